import type { FastifyInstance } from 'fastify'
import { routes } from '../../contract/routes.ts'
import { ProblemError } from '../errors.ts'
import { serve } from '../http/contract-route.ts'
import { findStake, listStakes } from '../store/stakes.ts'
import { type CreateStakeDeps, createStake } from './create-stake.ts'
import { stakeBody } from './stake-body.ts'
import { submitStake } from './submit-stake.ts'

const defaultLimit = 50

/** The operations on Ethereum stakes. An account sees its own stakes only: all others don't exist for it. */
export function ethereumStakeRoutes(app: FastifyInstance, deps: CreateStakeDeps): void {
  const { db } = deps.store

  serve(app, routes.createEthereumStake, createStake(deps))
  serve(app, routes.submitEthereumStake, submitStake(deps))

  serve(app, routes.getEthereumStake, async ({ caller, params }) => {
    const stake = await findStake(db, caller.account, params.stakeId)
    if (stake === undefined) throw new ProblemError('not-found', `there is no stake ${params.stakeId}`)
    return { status: 200, body: stakeBody(stake) }
  })

  serve(app, routes.listEthereumStakes, async ({ caller, query }) => {
    const limit = query.limit ?? defaultLimit
    const rows = await listStakes(db, {
      account: caller.account,
      limit,
      before: query.cursor === undefined ? undefined : decodeCursor(query.cursor),
      network: query.network,
      externalReference: query.externalReference,
    })
    const items = rows.slice(0, limit)
    const last = items.at(-1)
    const more = rows.length > limit && last !== undefined
    return { status: 200, body: { items: items.map(stakeBody), ...(more ? { nextCursor: encodeCursor(last.id) } : {}) } }
  })
}

/** Opaque to clients, so that it may become something else. */
const encodeCursor = (id: string): string => Buffer.from(`v1:${id}`).toString('base64url')

function decodeCursor(cursor: string): string {
  const id = /^v1:([0-9a-f]{32})$/.exec(Buffer.from(cursor, 'base64url').toString())?.[1]
  if (id === undefined) {
    const detail = 'the cursor is not one of this service: take it from nextCursor of the page before'
    throw new ProblemError('invalid-request', detail, { errors: [{ pointer: '/query/cursor', code: 'invalid-cursor', detail }] })
  }
  return id
}
