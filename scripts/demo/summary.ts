import { verifyDepositSignature, withdrawalCredentials } from '../../src/chains/ethereum/deposit.ts'
import { formatEth, gwei, parseEth } from '../../src/lib/amounts.ts'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import type { SeenDeposit } from '../../test/chains/deposit-contract.ts'
import type { DemoEthereum } from './ethereum.ts'
import { isReady, isStalled, nameOf, readyMessage, readyReason } from './resources.ts'

export interface Summary {
  readonly accepted: readonly { readonly name: string; readonly hash: string; readonly amountEth: string; readonly pubkey: string }[]
  readonly refused: readonly { readonly name: string; readonly reason: string; readonly message: string }[]
  readonly depositCount: number
  /** What should hold and doesn't. */
  readonly failures: readonly string[]
}

/** Whether policy must refuse this example. */
export const mustBeRefused = (stake: EthereumStake): boolean => nameOf(stake) === 'team-c/not-admitted'

/** Compares what Kubernetes says with what the chain says: every accepted stake is one deposit that pays the right address and amount, validly signed. */
export async function summarise(
  chain: Pick<DemoEthereum, 'depositCount' | 'deposits' | 'forkVersion'>,
  stakes: readonly EthereumStake[],
): Promise<Summary> {
  const depositCount = await chain.depositCount()
  const deposits = await chain.deposits()
  const accepted = stakes.filter((stake) => !mustBeRefused(stake))
  const failures: string[] = []
  for (const stake of accepted) {
    if (!isReady(stake)) failures.push(`${nameOf(stake)} is not ready: ${readyReason(stake)}: ${readyMessage(stake)}`)
    else failures.push(...wrongs(stake, deposits, chain.forkVersion))
  }
  for (const stake of stakes.filter(mustBeRefused)) {
    if (!isStalled(stake)) failures.push(`${nameOf(stake)} should have been refused`)
  }
  if (depositCount !== accepted.length)
    failures.push(`the deposit contract counts ${depositCount} deposits for ${accepted.length} accepted stakes`)
  if (new Set(deposits.map(({ pubkey }) => pubkey)).size !== deposits.length) failures.push('a public key was deposited twice')
  return {
    accepted: accepted.filter(isReady).map((stake) => ({
      name: nameOf(stake),
      hash: stake.status?.transaction?.minedHash ?? '',
      amountEth: stake.spec.amountEth,
      pubkey: stake.status?.depositData?.pubkey ?? '',
    })),
    refused: stakes.filter(isStalled).map((stake) => ({ name: nameOf(stake), reason: readyReason(stake), message: readyMessage(stake) })),
    depositCount,
    failures,
  }
}

function wrongs(stake: EthereumStake, deposits: readonly SeenDeposit[], forkVersion: DemoEthereum['forkVersion']): string[] {
  const own = deposits.filter(({ pubkey }) => pubkey === stake.status?.depositData?.pubkey)
  const [deposit] = own
  if (deposit === undefined || own.length !== 1) return [`${nameOf(stake)}: ${own.length} deposits on the chain`]
  const type = stake.spec.credentialsType === 'Execution' ? '0x01' : '0x02'
  const wrong: string[] = []
  if (deposit.withdrawalCredentials !== withdrawalCredentials(type, stake.spec.withdrawalAddress as `0x${string}`))
    wrong.push('pays another address')
  if (deposit.amountGwei !== parseEth(stake.spec.amountEth)) wrong.push(`pays ${formatEth(gwei(deposit.amountGwei))} ETH`)
  if (deposit.txHash !== stake.status?.transaction?.minedHash) wrong.push('was made by another transaction')
  if (!verifyDepositSignature({ ...deposit, amountGwei: gwei(deposit.amountGwei) }, forkVersion)) wrong.push('has an invalid BLS signature')
  return wrong.map((what) => `${nameOf(stake)}: its deposit ${what}`)
}

export function printSummary(summary: Summary, say: (line: string) => void): void {
  say('\nDeposited:')
  for (const { name, amountEth, hash, pubkey } of summary.accepted)
    say(`  ${name}  ${amountEth} ETH\n    transaction ${hash}\n    validator   ${pubkey}`)
  say('Refused:')
  for (const { name, reason, message } of summary.refused) say(`  ${name}  ${reason}: ${message}`)
  say(`The deposit contract counts ${summary.depositCount} deposits; each was decoded from the chain and compared with its manifest.`)
}
