import { ChainError } from '../../chains/ethereum/chain.ts'
import { SolanaError } from '../../chains/solana/chain.ts'
import { AmountError } from '../../lib/amounts.ts'
import { Halt } from '../../operator/engine/verdict.ts'
import type { Fees, LimitEffect, Movement, PolicyAnswer, Said } from './planned.ts'
import { NotAskedError } from './world.ts'

/** What is found out of one resource, as it is found. */
export interface Draft {
  readonly does: string[]
  readonly policy: PolicyAnswer[]
  readonly limits: LimitEffect[]
  readonly approvals: string[]
  readonly refusals: Said[]
  readonly waits: Said[]
  readonly unknown: string[]
  moves?: Movement
  fees?: Fees
}

export const emptyDraft = (): Draft => ({ does: [], policy: [], limits: [], approvals: [], refusals: [], waits: [], unknown: [] })

/** Takes down how something ended that could not be done. @returns false @throws what is nobody's finding */
export function note(draft: Draft, error: unknown): false {
  if (error instanceof Halt && error.verdict.kind !== 'conflict') {
    const { kind, reason, message } = error.verdict
    const said: Said = { by: 'operator', reason, message }
    if (kind === 'stall') refuse(draft, said)
    else draft.waits.push(said)
    return false
  }
  if (error instanceof NotAskedError) draft.unknown.push('what the staking API says of it: a plan asks that nothing')
  else if (error instanceof ChainError || error instanceof SolanaError) draft.unknown.push(`what the nodes say: ${error.message}`)
  else if (error instanceof AmountError) refuse(draft, { by: 'operator', reason: 'InvalidSpec', message: error.message })
  else throw error
  return false
}

/** Once, whoever finds it out. */
export function refuse(draft: Draft, said: Said): void {
  if (!draft.refusals.some(({ message }) => message === said.message)) draft.refusals.push(said)
}

/** @returns what came of it; undefined where it is told in the draft instead */
export async function attempt<T>(draft: Draft, make: () => Promise<T> | T): Promise<T | undefined> {
  try {
    return await make()
  } catch (error) {
    note(draft, error)
    return undefined
  }
}
