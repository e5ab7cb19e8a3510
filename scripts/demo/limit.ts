import type { DemoEthereum } from './ethereum.ts'
import { named, nameOf, type Resources, readyMessage, readyReason } from './resources.ts'
import type { Scene } from './scene.ts'

const SIGNER = 'treasury'
const [namespace, name] = ['team-a', 'one-too-many']
const LONG_MS = 60_000

/** @param deposits what the signer has paid for so far: its limit is set to that, and the next stake waits. @returns what doesn't hold */
export async function playLimit({ stack, say, follow }: Scene, ethereum: DemoEthereum, deposits: number): Promise<readonly string[]> {
  const { cluster } = stack
  const limit = async (limits: readonly object[]): Promise<void> => {
    const patch = JSON.stringify({ spec: { policy: { limits } } })
    say(`kubectl patch signer ${SIGNER} --type merge -p '${patch}'`)
    await cluster.kubectlOk(['patch', 'signer', SIGNER, '--type', 'merge', '-p', patch])
  }
  say(`\na limit for ${SIGNER}, which has paid for ${deposits} deposits, and one stake more`)
  await limit([{ window: '24h', maxCount: deposits }])
  await cluster.kubectlOk(['apply', '-f', '-'], {
    input: JSON.stringify({
      apiVersion: 'staking.dev/v1alpha1',
      kind: 'EthereumStake',
      metadata: { name, namespace },
      spec: { network: 'local', amountEth: '32', withdrawalAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', signer: SIGNER },
    }),
  })
  const key = `${namespace}/${name}`
  const isStopped = ({ stakes }: Resources) => stakes.some((stake) => nameOf(stake) === key && readyReason(stake) === 'LimitReached')
  const all = await follow(isStopped, undefined, LONG_MS)
  const stopped = named(all.stakes, key)
  const failures: string[] = []
  if (readyReason(stopped) !== 'LimitReached')
    failures.push(`${key} should wait for the limit of ${SIGNER}: ${readyReason(stopped)}: ${readyMessage(stopped)}`)
  say(`\nStopped by a limit:\n  ${key}  ${readyReason(stopped)}: ${readyMessage(stopped)}\nTaken back, before anything was signed for it:`)
  say(`kubectl delete ethstake ${name} -n ${namespace}`)
  await cluster.kubectlOk(['delete', 'ethstake', name, '-n', namespace, '--timeout=60s'])
  await limit([])
  const count = await ethereum.depositCount()
  if (count !== deposits) failures.push(`the deposit contract counts ${count} deposits, and counted ${deposits} before the limit`)
  return failures
}
