import { formatEth, gwei } from '../../src/lib/amounts.ts'
import type { SolanaStake } from '../../src/resources/solana-stake.ts'
import { callRpc } from '../../test/chains/json-rpc.ts'
import { SOLANA_STAKER_ADDRESS, SOLANA_WITHDRAWER_ADDRESS } from '../../test/stack/stack.ts'
import { isReady, named, type Resources, readyMessage, readyReason } from './resources.ts'
import type { Scene } from './scene.ts'

const STAYS = 'team-b/stays'
const RETURNS = 'team-a/returns'
const LONG_MS = 240_000
const sol = (lamports: bigint): string => `${formatEth(gwei(lamports))} SOL`

interface Landed {
  readonly meta: { readonly fee: number; readonly err: unknown }
}

export interface SolanaBalances {
  readonly staker: bigint
  readonly withdrawer: bigint
}
export const solanaBalances = ({ stack: { solana } }: Pick<Scene, 'stack'>): SolanaBalances => ({
  staker: solana.balance(SOLANA_STAKER_ADDRESS),
  withdrawer: solana.balance(SOLANA_WITHDRAWER_ADDRESS),
})

/**
 * Two stakes become active; one is made inactive and withdrawn by patches. Every lamport is accounted for.
 * @returns what doesn't hold
 */
export async function playSolana(scene: Scene, before: SolanaBalances): Promise<readonly string[]> {
  const { stack, say, follow } = scene
  const { solana } = stack
  const failures: string[] = []
  const expected = (holds: boolean, otherwise: string) => {
    if (!holds) failures.push(otherwise)
  }
  /** Epochs pass when something waits for one, and nothing is on its way: a real epoch is two days, and never outruns a transaction. */
  const epochsPass = async ({ solana: all }: Resources) => {
    const waits = ({ status }: SolanaStake) => status?.protocol?.status === 'Activating' || status?.protocol?.status === 'Deactivating'
    if (all.some(waits) && all.every((stake) => waits(stake) || isReady(stake))) solana.nextEpoch()
  }
  const patch = async (desiredState: string): Promise<Resources> => {
    const [namespace = '', name = ''] = RETURNS.split('/')
    say(`\nkubectl patch solstake ${name} -n ${namespace} --type merge -p '{"spec":{"desiredState":"${desiredState}"}}'`)
    await stack.cluster.kubectlOk([
      'patch',
      'solstake',
      name,
      '-n',
      namespace,
      '--type',
      'merge',
      '-p',
      JSON.stringify({ spec: { desiredState } }),
    ])
    return follow(({ solana: all }) => isIn(named(all, RETURNS), desiredState), epochsPass, LONG_MS)
  }
  const isIn = (stake: SolanaStake, state: string): boolean => isReady(stake) && stake.status?.protocol?.status === state
  const told = (stake: SolanaStake): string => `${readyReason(stake)}: ${readyMessage(stake)}`

  say('\nwaiting until both Solana stakes are active')
  const active = await follow(({ solana: all }) => all.every((stake) => isIn(stake, 'Active')), epochsPass, LONG_MS)
  for (const name of [STAYS, RETURNS]) {
    const stake = named(active.solana, name)
    expected(isIn(stake, 'Active'), `${name} is not active: ${told(stake)}`)
  }
  const inactive = named((await patch('Inactive')).solana, RETURNS)
  expected(isIn(inactive, 'Inactive'), `${RETURNS} is not inactive: ${told(inactive)}`)
  const all = await patch('Withdrawn')
  const withdrawn = named(all.solana, RETURNS)
  expected(isIn(withdrawn, 'Withdrawn'), `${RETURNS} is not withdrawn: ${told(withdrawn)}`)

  const stays = named(all.solana, STAYS)
  const held = {
    stays: solana.balance(stays.status?.stakeAccount ?? ''),
    returns: solana.balance(withdrawn.status?.stakeAccount ?? ''),
  }
  const fees = await feesPaidBy(solana.url, SOLANA_STAKER_ADDRESS)
  const after = solanaBalances(scene)
  const amounts = { stays: BigInt(stays.spec.amountLamports), returns: BigInt(withdrawn.spec.amountLamports) }
  expected(held.stays === amounts.stays, `the stake account of ${STAYS} holds ${held.stays} lamports`)
  expected(held.returns === 0n, `the stake account of ${RETURNS} still holds ${held.returns} lamports`)
  expected(
    after.staker === before.staker - amounts.stays - amounts.returns - fees.lamports,
    `the staker holds ${after.staker} lamports: ${before.staker} less both stakes and ${fees.lamports} of fees is another number`,
  )
  expected(
    after.withdrawer === before.withdrawer + amounts.returns,
    `the withdrawer holds ${after.withdrawer} lamports, and had ${before.withdrawer}`,
  )
  say(`\nSolana, in lamports:
                 before          after
  staker         ${String(before.staker).padEnd(15)} ${after.staker}
  withdrawer     ${String(before.withdrawer).padEnd(15)} ${after.withdrawer}
  ${STAYS.padEnd(14)} 0               ${held.stays}
  ${RETURNS.padEnd(14)} 0               ${held.returns}
  fees           0               ${fees.lamports} (${fees.count} transactions)
  together       ${String(before.staker + before.withdrawer).padEnd(15)} ${after.staker + after.withdrawer + held.stays + held.returns + fees.lamports}
${sol(amounts.returns)} were staked, made inactive and returned; ${sol(amounts.stays)} stay staked.`)
  return failures
}

/** What the fee payer has paid for everything that landed, failed ones too. */
async function feesPaidBy(url: string, address: string): Promise<{ readonly lamports: bigint; readonly count: number }> {
  const signatures = await callRpc<readonly { signature: string }[]>(url, 'getSignaturesForAddress', [address])
  let lamports = 0n
  for (const { signature } of signatures) {
    const landed = await callRpc<Landed | null>(url, 'getTransaction', [
      signature,
      { commitment: 'confirmed', maxSupportedTransactionVersion: 0 },
    ])
    lamports += BigInt(landed?.meta.fee ?? 0)
  }
  return { lamports, count: signatures.length }
}
