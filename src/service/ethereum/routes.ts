import type { FastifyInstance } from 'fastify'
import type { BeaconValidator } from '../../chains/ethereum/beacon.ts'
import { routes } from '../../contract/routes.ts'
import { ProblemError } from '../errors.ts'
import type { AnswersAtHand } from '../http/at-hand.ts'
import { answer, type Input, serve } from '../http/contract-route.ts'
import { createWrittenAnswers } from '../http/written-answers.ts'
import { findStakeVersion, listStakes, type StakeRow, stakeVersions } from '../store/stakes.ts'
import { cancelStake } from './cancel-stake.ts'
import { type CreateStakeDeps, createStake } from './create-stake.ts'
import { decodeCursor, defaultLimit, pageOf } from './cursor.ts'
import { stakeBody } from './stake-body.ts'
import { type SubmitStakeDeps, submitStake } from './submit-stake.ts'
import { isSameValidator } from './validator-statuses.ts'

/**
 * The operations on Ethereum stakes. An account sees its own stakes only: all others don't exist for it.
 * @returns the answers to GETs of a stake that can be sent at once
 */
export function ethereumStakeRoutes(app: FastifyInstance, deps: CreateStakeDeps & SubmitStakeDeps): AnswersAtHand {
  const { db } = deps.store

  const { validators } = deps
  const written = createWrittenAnswers<StakeRow, Pick<StakeRow, 'network' | 'pubkey' | 'status'>, BeaconValidator | undefined>({
    clock: deps.clock,
    isShared: deps.store.isShared,
    versions: (ids) => stakeVersions(deps.store.looks, ids),
    read: async (account, id) => {
      const row = await findStakeVersion(db, account, id)
      return row === undefined ? undefined : { row, version: row.version }
    },
    keyOf: ({ network, pubkey, status }) => ({ network, pubkey, status }),
    beside: { ...validators, refresh: (stake, signal) => validators.refresh([stake], signal), isSame: isSameValidator },
    write: (row, seen) => answer(routes.getEthereumStake, 200, stakeBody(row, seen)),
  })
  const changes = { answers: written, idOf: ({ stakeId = '' }: Readonly<Record<string, string>>) => stakeId }
  serve(app, routes.createEthereumStake, createStake(deps))
  serve(app, routes.submitEthereumStake, submitStake(deps), { changes })
  serve(app, routes.cancelEthereumStake, cancelStake(deps), { changes })

  const getStake = async (input: Input<typeof routes.getEthereumStake>) => {
    const { caller, params } = input
    const found = await written.get(caller.account, params.stakeId, () => input.signal)
    if (found === undefined) throw new ProblemError('not-found', `there is no stake ${params.stakeId}`)
    return found
  }
  serve(app, routes.getEthereumStake, getStake)

  serve(app, routes.listEthereumStakes, async ({ caller, query, signal }) => {
    const limit = query.limit ?? defaultLimit
    const rows = await listStakes(db, {
      account: caller.account,
      limit,
      before: query.cursor === undefined ? undefined : decodeCursor(query.cursor),
      network: query.network,
      networks: caller.networks,
      externalReference: query.externalReference,
    })
    await deps.validators.refresh(rows.slice(0, limit), signal)
    return { status: 200, body: pageOf(rows, limit, (row) => stakeBody(row, deps.validators.known(row))) }
  })
  return { route: routes.getEthereumStake, find: written.atHand }
}
