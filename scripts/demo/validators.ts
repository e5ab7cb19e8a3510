import type { Address, Hex } from '../../src/chains/ethereum/chain.ts'
import { formatEth, formatWeiAsEth, gwei, wei } from '../../src/lib/amounts.ts'
import { isTrue } from '../../src/resources/conditions.ts'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import { clientOf } from '../../test/stack/stack.ts'
import type { DemoEthereum, Opening } from './ethereum.ts'
import { isReady, isStalled, named, nameOf, type Resources, readyMessage, readyReason } from './resources.ts'
import type { Scene } from './scene.ts'
import { mustBeRefused } from './summary.ts'

const names = { withdrawal: 'team-b/eight', tooMuch: 'team-b/too-much', exit: 'team-a/leave', cancelled: 'team-a/changed-my-mind' }
const stakes = { leaving: 'team-a/validator-1', staying: 'team-a/validator-2', compounding: 'team-b/compounding' }
const LONG_MS = 600_000

/** It is active, or was and is leaving: on a real network nobody waits for the others. */
const hasBeenActive = ({ status }: EthereumStake): boolean =>
  isTrue(status?.conditions, 'Active') || ['Exiting', 'Withdrawing', 'Exited'].includes(status?.phase ?? '')
const pubkeyOf = (stake: EthereumStake): Hex => (stake.status?.depositData?.pubkey ?? '0x') as Hex
const isPaidOut = (stake: EthereumStake): boolean => stake.status?.validator?.status === 'withdrawal_done'

/**
 * Validators become active; one pays out part of its balance, one leaves, one's exit is cancelled, and a withdrawal of too much is refused.
 * @returns what doesn't hold
 */
export async function playValidators(scene: Scene, ethereum: DemoEthereum, opening: Opening): Promise<readonly string[]> {
  const { stack, say, follow } = scene
  const failures: string[] = []
  const expected = (holds: boolean, otherwise: string) => {
    if (!holds) failures.push(otherwise)
  }
  const accepted = (all: Resources) => all.stakes.filter((stake) => !mustBeRefused(stake))

  say('\nwaiting until the validators are active, and old enough for what is asked of them')
  const settled = await follow(
    (all) =>
      accepted(all).every(hasBeenActive) &&
      isReady(named(all.withdrawals, names.withdrawal)) &&
      isStalled(named(all.withdrawals, names.tooMuch)) &&
      isReady(named(all.exits, names.exit)) &&
      readyReason(named(all.exits, names.cancelled)) === 'Planned',
    ethereum.timePasses,
    LONG_MS,
  )
  for (const name of Object.values(stakes)) {
    const stake = named(settled.stakes, name)
    expected(stake.status?.validator !== undefined, `${name} has no validator: ${readyMessage(stake)}`)
  }
  for (const request of [named(settled.withdrawals, names.withdrawal), named(settled.exits, names.exit)])
    expected(isReady(request), `${nameOf(request)} is not accepted: ${readyReason(request)}: ${readyMessage(request)}`)
  const refused = named(settled.withdrawals, names.tooMuch)
  expected(isStalled(refused), `${names.tooMuch} should have been refused: ${readyMessage(refused)}`)

  say(`\ndeleting ${names.cancelled}, which was created and not sent: ${readyMessage(named(settled.exits, names.cancelled))}`)
  const [namespace = '', name = ''] = names.cancelled.split('/')
  await stack.cluster.kubectlOk(['delete', 'vexit', name, '-n', namespace, '--timeout=60s'])
  const pubkey = pubkeyOf(named(settled.stakes, stakes.staying))
  const { body } = await clientOf(stack).listExitRequests({ params: { pubkey } }, AbortSignal.timeout(10_000))
  const [request] = body.items
  expected(request?.status === 'cancelled', `the staking API has ${names.cancelled} as ${request?.status ?? 'nothing'}, not as cancelled`)

  say('\nwaiting until the balance of the one that leaves, and what was withdrawn, are paid')
  const source = (named(settled.stakes, stakes.leaving).spec.withdrawalAddress as Address).toLowerCase() as Address
  const indexOf = (all: Resources, of: string) => named(all.stakes, of).status?.validator?.index
  const paidTo = async (all: Resources, of: string) =>
    (await ethereum.paymentsTo(source)).filter(({ validatorIndex }) => validatorIndex === indexOf(all, of))
  let payments = await paidTo(settled, stakes.compounding)
  const after = await follow(
    (all) => isPaidOut(named(all.stakes, stakes.leaving)) && payments.length > 0,
    async (all) => {
      await ethereum.timePasses()
      payments = await paidTo(all, stakes.compounding)
    },
    LONG_MS,
  )
  const left = await paidTo(after, stakes.leaving)
  const leftGwei = left.reduce((sum, { amountGwei }) => sum + amountGwei, 0n)
  expected(
    payments.length === 1 && payments[0]?.amountGwei === 8_000_000_000n,
    `${names.withdrawal} was paid ${payments.length} times: ${payments.map(({ amountGwei }) => formatEth(gwei(amountGwei))).join(', ')} ETH`,
  )
  expected(isPaidOut(named(after.stakes, stakes.leaving)), `${stakes.leaving} was not paid out`)

  const requests = await ethereum.requests()
  const described = requests.map(({ source: from, request: made }) => `${from} ${made.kind} ${made.pubkey}`).sort()
  const wanted = [
    `${source} exit ${pubkeyOf(named(after.stakes, stakes.leaving)).toLowerCase()}`,
    `${source} withdrawal ${pubkeyOf(named(after.stakes, stakes.compounding)).toLowerCase()}`,
  ].sort()
  expected(described.join() === wanted.join(), `the chain has these requests: ${described.join('; ') || 'none'}`)

  const { paid, spent, balance } = await ethereum.account(source, opening)
  expected(
    balance === opening.balance + paid - spent,
    `${source} holds ${balance} wei, not the ${opening.balance} it had, with ${paid} paid and ${spent} spent`,
  )
  say(`\nValidators:
  ${names.withdrawal}  8 ETH asked, ${payments.map(({ amountGwei }) => formatEth(gwei(amountGwei))).join(' + ')} ETH paid to ${source}
  ${names.exit}  validator ${pubkeyOf(named(after.stakes, stakes.leaving)).slice(0, 18)}… has left, ${formatEth(gwei(leftGwei))} ETH paid
  ${names.cancelled}  deleted before it was sent: ${request?.status ?? 'unknown'} at the staking API
  ${names.tooMuch}  ${readyReason(refused)}: ${readyMessage(refused)}
The contract has ${requests.length} requests. ${source} had ${formatWeiAsEth(wei(opening.balance))} ETH, was paid ${formatWeiAsEth(wei(paid))}, spent ${formatWeiAsEth(wei(spent))} on fees, and holds ${formatWeiAsEth(wei(balance))}.`)
  return failures
}
