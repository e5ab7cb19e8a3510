import type { FastifyInstance } from 'fastify'
import { routes } from '../../contract/routes.ts'
import { ProblemError } from '../errors.ts'
import { serve } from '../http/contract-route.ts'
import { findStake, listStakes } from '../store/stakes.ts'
import { cancelStake } from './cancel-stake.ts'
import { type CreateStakeDeps, createStake } from './create-stake.ts'
import { decodeCursor, defaultLimit, pageOf } from './cursor.ts'
import { stakeBody } from './stake-body.ts'
import { type SubmitStakeDeps, submitStake } from './submit-stake.ts'

/** The operations on Ethereum stakes. An account sees its own stakes only: all others don't exist for it. */
export function ethereumStakeRoutes(app: FastifyInstance, deps: CreateStakeDeps & SubmitStakeDeps): void {
  const { db } = deps.store

  serve(app, routes.createEthereumStake, createStake(deps))
  serve(app, routes.submitEthereumStake, submitStake(deps))
  serve(app, routes.cancelEthereumStake, cancelStake(deps))

  serve(app, routes.getEthereumStake, async ({ caller, params, signal }) => {
    const stake = await findStake(db, caller.account, params.stakeId)
    if (stake === undefined) throw new ProblemError('not-found', `there is no stake ${params.stakeId}`)
    await deps.validators.refresh([stake], signal)
    return { status: 200, body: stakeBody(stake, deps.validators.known(stake)) }
  })

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
}
