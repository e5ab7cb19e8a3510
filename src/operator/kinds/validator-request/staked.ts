import type { Address } from '../../../chains/ethereum/chain.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { lowerCase, type Pubkey } from '../../../lib/chain-types.ts'
import { sameHex } from '../../../lib/hex.ts'
import { isTrue } from '../../../resources/conditions.ts'
import type { EthereumStake } from '../../../resources/ethereum-stake.ts'
import { externalReference } from '../../engine/origin.ts'
import { stall, wait } from '../../engine/verdict.ts'
import { type Visit, visitNote } from '../../engine/visit.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { whenEpoch } from './refusal.ts'
import type { FoundValidator, RequestOrder } from './steps.ts'

type DepositData = NonNullable<NonNullable<EthereumStake['status']>['depositData']>

/** Whether a stake of the namespace, or the one of a name, has paid for the validator, by the log: whoever adopts the same stake elsewhere finds its record taken. */
export const isPaidIn = (
  log: Pick<TransactionLog, 'ofSubject'>,
  {
    namespace,
    name,
    chainId,
    pubkey,
  }: { readonly namespace: string; readonly name?: string; readonly chainId: number; readonly pubkey: string },
): boolean =>
  log
    .ofSubject(lowerCase(pubkey as Pubkey))
    .some(
      ({ spec, status }) =>
        spec.purpose === 'Deposit' &&
        spec.chainId === chainId &&
        spec.owner.namespace === namespace &&
        (name === undefined || spec.owner.name === name) &&
        status?.outcome?.is === 'Landed',
    )

/**
 * In what a stake, as its resource shows it, is another than the staking API's. `isPaid`: the log has its deposit as this very resource's. Whoever may adopt a stake that
 * was made for no resource says nothing by that of whose it is: two namespaces may name it, and one pays.
 */
function differences(
  { metadata: { namespace = '', name }, spec }: EthereumStake,
  stakeId: string,
  depositData: DepositData,
  body: EthereumStakeBody,
  isPaid: boolean,
): readonly string[] {
  const reference = externalReference({ kind: 'EthereumStake', namespace, name })
  const isOfNamespace = body.externalReference?.startsWith(`EthereumStake/${namespace}/`) === true
  return [
    body.stakeId === stakeId ? [] : ['id'],
    body.network === spec.network ? [] : ['network'],
    sameHex(body.depositData.pubkey, depositData.pubkey) && sameHex(body.validator.pubkey, depositData.pubkey) ? [] : ['public key'],
    sameHex(body.withdrawalAddress, spec.withdrawalAddress) ? [] : ['withdrawal address'],
    isPaid || body.externalReference === reference || (spec.adopt?.stakeId === stakeId && isOfNamespace) ? [] : ['external reference'],
  ].flat()
}

/** What the staking API has said of the stake that a request names. */
const saidOf = visitNote<EthereumStakeBody>('stakeOfRequest')

export type StakedValidators = ReturnType<typeof createStakedValidators>

/** Validators that EthereumStakes of a request's namespace have paid for. */
export function createStakedValidators(
  deps: Pick<ValidatorRequestDeps, 'stake'> & { readonly log: Pick<TransactionLog, 'ofSubject'> },
  networkOf: (name: string) => EthereumNetwork,
) {
  /** The stake, with what the staking API says of it: its status alone may have been forged. */
  async function stakeOf(order: RequestOrder, name: string, visit: Visit, signal: AbortSignal) {
    const { namespace } = order.origin
    const stake = deps.stake(namespace, name)
    if (stake === undefined)
      throw wait('WaitingForStake', `There is no EthereumStake ${name} in namespace ${namespace}. It goes on when there is.`, 30_000)
    const network = networkOf(stake.spec.network)
    const { stakeId, depositData, transaction, phase = 'Pending' } = stake.status ?? {}
    if (transaction?.state !== 'Confirmed' || stakeId === undefined || depositData === undefined) {
      const stalled = isTrue(stake.status?.conditions, 'Stalled') ? '; it is stalled and needs a person' : ''
      throw wait(
        'WaitingForStake',
        `The deposit of EthereumStake ${name} is not final yet (it is ${phase}${stalled}). It goes on by itself.`,
        slowly(network),
      )
    }
    const body = saidOf.of(visit) ?? saidOf.write(visit, await network.api.ethereumStake(stakeId, signal))
    const isPaid = isPaidIn(deps.log, { namespace, name, chainId: network.config.chainId, pubkey: body.depositData.pubkey })
    const wrong = differences(stake, stakeId, depositData, body, isPaid)
    if (wrong.length > 0) {
      throw stall(
        'VerificationFailed',
        `The status of EthereumStake ${name} is not what the staking API says of its stake (another ${wrong.join(', ')}). Nothing was signed. Find out who changed it.`,
      )
    }
    return { stake, body }
  }

  /** The stake's validator, once it may be asked for something. @throws Halt where it is not active yet */
  async function validatorOf(
    order: RequestOrder,
    name: string,
    visit: Visit,
    signal: AbortSignal,
  ): Promise<FoundValidator & { readonly withdrawalAddress: Address }> {
    const { stake, body } = await stakeOf(order, name, visit, signal)
    const { status, activationEpoch } = body.validator
    if (status === 'unknown' || status === 'pending_initialized' || status === 'pending_queued')
      throw wait(
        'ValidatorNotActive',
        `The validator of EthereumStake ${name} is not active yet${activationEpoch === undefined ? ': its activation epoch is not set (the deposit is processed first, then it waits in the queue)' : `: it becomes active in ${whenEpoch(stake.spec.network, activationEpoch)}, and may exit or be withdrawn from some time later (256 epochs on public networks)`}. It goes on by itself.`,
        slowly(networkOf(stake.spec.network)),
      )
    return {
      network: stake.spec.network,
      pubkey: lowerCase(body.depositData.pubkey),
      withdrawalAddress: stake.spec.withdrawalAddress,
    }
  }

  return { stakeOf, validatorOf }
}

/** For what takes epochs. */
const slowly = ({ config }: Pick<EthereumNetwork, 'config'>): number => config.pollIntervalMs * 5
