import { BeaconError } from '../../chains/ethereum/beacon.ts'
import type { BeaconGet } from '../../chains/ethereum/beacon-http.ts'
import { type BeaconIdentity, type BeaconNetwork, type BeaconNode, createVerify, headSlot } from '../../chains/ethereum/beacon-nodes.ts'
import { finality, lastBlock, pendingPartialWithdrawals, queuedDeposits, validatorsAt } from '../../chains/ethereum/beacon-state.ts'
import { epochOf } from '../../chains/ethereum/beacon-time.ts'
import type { Pubkey } from '../../chains/ethereum/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Finding, failed, ok, saying, warning } from './finding.ts'

/** A key that every client takes for one: the generator of the curve. */
const someKey =
  '0x97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb' as const satisfies Pubkey
/** A chain that finalizes is two or three epochs behind its head. */
const LATE_EPOCHS = 5

/** Looks at one beacon node alone, with questions that change nothing: its network, its head, and what is asked of it. */
export async function lookAtBeaconNode(
  network: BeaconNetwork,
  number: number,
  get: BeaconGet,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const about = `${network.name}, beacon node ${number}`
  let identity: BeaconIdentity
  try {
    identity = await createVerify(network, undefined)({ get }, number)
  } catch (error) {
    signal.throwIfAborted()
    return [failed('node', about, `${saying(error)}. Check its URL in beaconApiUrls of ${network.name}`)]
  }
  const node: BeaconNode = { get, index: number - 1, sees: () => {}, ...identity }
  let slot: number
  try {
    slot = await headSlot(node, clock, undefined, signal)
  } catch (error) {
    signal.throwIfAborted()
    const isBehind = error instanceof BeaconError && error.code === 'behind'
    return [(isBehind ? warning : failed)('node', about, `${saying(error)}: it syncs, it stands still, or this clock is wrong`)]
  }
  const epoch = epochOf(slot, node.spec)
  const findings: Finding[] = [ok('node', about, `it serves ${network.name}, slot ${slot}, epoch ${epoch}`)]
  const questions: readonly (readonly [what: string, ask: () => Promise<unknown>])[] = [
    ['validators', () => validatorsAt(node, slot, [someKey], signal)],
    ['pending_deposits', () => queuedDeposits(node, slot, signal)],
    ['pending_partial_withdrawals', () => pendingPartialWithdrawals(node, slot, signal)],
    ['headers', () => lastBlock(node, slot, signal)],
  ]
  for (const [what, ask] of questions)
    await ask().catch((error: unknown) => {
      signal.throwIfAborted()
      findings.push(failed('node', about, `it does not serve ${what}: ${saying(error)}. Have it served, or add a beacon node that does`))
    })
  try {
    const { finalized } = await finality(node, slot, signal)
    if (epoch - finalized.epoch > LATE_EPOCHS)
      findings.push(
        warning(
          'node',
          about,
          `its finalized epoch ${finalized.epoch} is ${epoch - finalized.epoch} behind its head: the chain does not finalize`,
        ),
      )
  } catch (error) {
    signal.throwIfAborted()
    findings.push(failed('node', about, `it does not serve finality_checkpoints: ${saying(error)}`))
  }
  return findings
}
