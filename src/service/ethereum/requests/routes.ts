import type { FastifyInstance } from 'fastify'
import type { Pubkey } from '../../../chains/ethereum/chain.ts'
import { routes } from '../../../contract/routes.ts'
import { answer, serve } from '../../http/contract-route.ts'
import { findRequest, listRequests, type RequestKey } from '../../store/requests.ts'
import { decodeCursor, defaultLimit, pageOf } from '../cursor.ts'
import type { EthereumNetworks } from '../networks.ts'
import { exitBody, withdrawalBody } from './body.ts'
import { cancelUnsent } from './cancel.ts'
import { readCapacity } from './capacity.ts'
import { type CreateRequestDeps, createRequest } from './create.ts'
import { checkOwner, checkPubkey, createLocate } from './locate.ts'
import { notFound, submitRequest } from './submit.ts'

export type RequestRoutesDeps = Omit<CreateRequestDeps, 'locate'> & { readonly networks: EthereumNetworks }

/** A transaction reaches the pools of a network in about that time. */
const visibleRetrySeconds = 2

/** The operations on validators: exits, partial withdrawals, and what can be withdrawn. */
export function validatorRoutes(app: FastifyInstance, deps: RequestRoutesDeps): void {
  const { store } = deps
  const { db } = store
  const locate = createLocate(deps)
  const create = createRequest({ ...deps, locate })
  const submit = submitRequest(deps)
  const cancel = cancelUnsent(deps)
  const capacity = readCapacity({ store, locate })

  async function read(key: RequestKey) {
    const row = await findRequest(db, key)
    if (row === undefined) throw notFound(key)
    return row
  }
  async function list(
    key: Omit<RequestKey, 'id'>,
    query: { limit?: number | undefined; cursor?: string | undefined; externalReference?: string | undefined },
  ) {
    checkPubkey(key.pubkey)
    await checkOwner(db, key.account, key.pubkey)
    const limit = query.limit ?? defaultLimit
    const before = query.cursor === undefined ? undefined : decodeCursor(query.cursor)
    return { limit, rows: await listRequests(db, { ...key, limit, before, externalReference: query.externalReference }) }
  }

  serve(app, routes.createExitRequest, ({ caller: { account }, params: { pubkey }, body, idempotent, signal }) =>
    create(
      {
        account,
        request: { kind: 'exit', pubkey },
        externalReference: body?.externalReference,
        idempotent,
        write: (row) => answer(routes.createExitRequest, 201, exitBody(row)),
      },
      signal,
    ),
  )
  serve(app, routes.createWithdrawalRequest, ({ caller: { account }, params: { pubkey }, body, idempotent, signal }) =>
    create(
      {
        account,
        request: { kind: 'withdrawal', pubkey, amountGwei: body.amountGwei },
        externalReference: body.externalReference,
        idempotent,
        write: (row) => answer(routes.createWithdrawalRequest, 201, withdrawalBody(row)),
      },
      signal,
    ),
  )

  serve(app, routes.submitExitRequest, async ({ caller, params, body, idempotent, signal }) => {
    const write = (row: Parameters<typeof exitBody>[0]) => answer(routes.submitExitRequest, 200, exitBody(row))
    const report = { key: keyOf('exit', caller, params), submission: body, idempotent, tellsVisibility: false, write }
    const done = await submit(report, signal)
    return 'notVisible' in done ? { status: 200, body: exitBody(done.notVisible) } : done
  })
  serve(app, routes.submitWithdrawalRequest, async ({ caller, params, body, idempotent, signal }) => {
    const write = (row: Parameters<typeof withdrawalBody>[0]) => answer(routes.submitWithdrawalRequest, 200, withdrawalBody(row))
    const report = { key: keyOf('withdrawal', caller, params), submission: body, idempotent, tellsVisibility: true, write }
    const done = await submit(report, signal)
    if (!('notVisible' in done)) return done
    return { status: 202, body: withdrawalBody(done.notVisible), retryAfterSeconds: visibleRetrySeconds }
  })

  serve(app, routes.getExitRequest, async ({ caller, params }) => ({
    status: 200,
    body: exitBody(await read(keyOf('exit', caller, params))),
  }))
  serve(app, routes.getWithdrawalRequest, async ({ caller, params }) => ({
    status: 200,
    body: withdrawalBody(await read(keyOf('withdrawal', caller, params))),
  }))

  serve(app, routes.cancelExitRequest, ({ caller, params, idempotent, signal }) =>
    cancel(keyOf('exit', caller, params), idempotent, (row) => answer(routes.cancelExitRequest, 200, exitBody(row)), signal),
  )
  serve(app, routes.cancelWithdrawalRequest, ({ caller, params, idempotent, signal }) =>
    cancel(
      keyOf('withdrawal', caller, params),
      idempotent,
      (row) => answer(routes.cancelWithdrawalRequest, 200, withdrawalBody(row)),
      signal,
    ),
  )

  serve(app, routes.listExitRequests, async ({ caller: { account }, params: { pubkey }, query }) => {
    const { rows, limit } = await list({ account, kind: 'exit', pubkey }, query)
    return { status: 200, body: pageOf(rows, limit, exitBody) }
  })
  serve(app, routes.listWithdrawalRequests, async ({ caller: { account }, params: { pubkey }, query }) => {
    const { rows, limit } = await list({ account, kind: 'withdrawal', pubkey }, query)
    return { status: 200, body: pageOf(rows, limit, withdrawalBody) }
  })

  serve(app, routes.getWithdrawalCapacity, async ({ caller, params, signal }) => ({
    status: 200,
    body: await capacity(caller.account, params.pubkey, signal),
  }))
}

const keyOf = (kind: RequestKey['kind'], caller: { account: string }, params: { pubkey: Pubkey; requestId: string }): RequestKey => ({
  account: caller.account,
  kind,
  pubkey: params.pubkey,
  id: params.requestId,
})
