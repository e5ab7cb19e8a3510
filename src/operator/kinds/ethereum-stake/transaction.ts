import { keccak256 } from 'viem'
import type { ChainTransaction, Hex } from '../../../chains/ethereum/chain.ts'
import { decodeDepositCalldata } from '../../../chains/ethereum/deposit.ts'
import { depositGasLimit, maxDepositGas } from '../../../chains/ethereum/deposit-gas.ts'
import { formatEth, gwei, gweiToWei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumStake, EthereumStakeSpec } from '../../../resources/ethereum-stake.ts'
import type { StakingTransactionSpec } from '../../../resources/staking-transaction.ts'
import { type Halt, stall, wait } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import type { LegacySigner } from '../../transactions/legacy/kind.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { transactionName } from '../../transactions/names.ts'
import { assertOwnerAsks } from '../../transactions/owner.ts'
import { attemptsOf, openAttempts } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { calldataOf, type DepositEvidence, fieldsOf, paysDeposit } from './evidence.ts'
import type { DepositRequests, EthereumStakeDeps } from './request.ts'
import { type DepositPlan, type StakeRequest, stakeRequestOf } from './steps.ts'

/** One deposit for a validator on a chain: whoever else wants to pay for it finds this name taken. */
export const depositName = (chainId: number, pubkey: string): string => transactionName({ purpose: 'Deposit', chainId, pubkey })

/** What is to be written down before a deposit is signed. */
export const depositSpec = (
  plan: Pick<DepositPlan, 'request' | 'stakeId' | 'depositData'>,
  { config }: EthereumNetwork,
  signer: LegacySigner,
): StakingTransactionSpec => {
  const { origin } = plan.request
  const fields = fieldsOf(plan)
  return {
    chain: 'Ethereum',
    network: config.name,
    chainId: config.chainId,
    purpose: 'Deposit',
    subject: fields.pubkey.toLowerCase(),
    amount: `${formatEth(fields.amountGwei)} ETH`,
    apiId: plan.stakeId,
    owner: { kind: origin.kind, namespace: origin.namespace, name: origin.name, originUid: origin.uid },
    generation: 0,
    signer: signer.metadata.name,
    from: signer.spec.address,
    call: { to: config.depositContractAddress, data: calldataOf(plan), valueWei: gweiToWei(fields.amountGwei).toString() },
  }
}

/** The record that a resource's deposit stands in: the one that is begun, before one that was only made. */
export function ownDeposit(
  log: Pick<TransactionLog, 'ofOwner'>,
  owner: { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string | undefined },
): RecordObject | undefined {
  const isBegun = ({ status }: RecordObject): boolean => status?.place !== undefined || status?.outcome !== undefined
  return log
    .ofOwner(owner)
    .filter(({ spec }) => spec.purpose === 'Deposit' && (owner.uid === undefined || spec.owner.originUid === owner.uid))
    .toSorted((a, b) => Number(isBegun(b)) - Number(isBegun(a)))[0]
}

const isThisCall = ({ to, data }: ChainTransaction, { spec }: RecordObject): boolean =>
  to !== undefined && sameHex(to, spec.call?.to ?? '') && sameHex(data, spec.call?.data ?? '')

export const callHash = (record: RecordObject): string => keccak256((record.spec.call?.data ?? '0x') as Hex)

/** What the log asks of deposits before it signs, sends and concludes. */
export function createDepositKind(
  deps: EthereumStakeDeps,
  { admittedSigner, capOf, networkOf }: DepositRequests,
  { verifyFields }: DepositEvidence,
): TransactionKind {
  const networkOfRecord = ({ spec }: RecordObject): EthereumNetwork => {
    const name = deps.networks.names('Ethereum').find((one) => deps.networks.ethereum(one)?.config.chainId === spec.chainId)
    return networkOf(name ?? spec.network)
  }
  /** The deposit that the call makes. The calldata does not carry the amount: the value does. */
  const fieldsIn = ({ spec }: RecordObject) => ({
    ...decodeDepositCalldata((spec.call?.data ?? '0x') as Hex),
    amountGwei: gwei(BigInt(spec.call?.valueWei ?? '0') / 1_000_000_000n),
  })

  async function requestOf(
    record: RecordObject,
    fresh: boolean,
    signal: AbortSignal,
  ): Promise<{ request: StakeRequest; spec: EthereumStakeSpec }> {
    const { kind, namespace, name } = record.spec.owner
    const stake = kind === 'EthereumStake' ? await deps.stake({ namespace, name }, fresh, signal) : undefined
    const origin = assertOwnerAsks(record, stake)
    const { spec } = stake as EthereumStake
    return { request: stakeRequestOf({ origin, spec }), spec }
  }

  async function mayBeSigned(record: RecordObject, fresh: boolean, signal: AbortSignal) {
    const { request, spec } = await requestOf(record, fresh, signal)
    const network = networkOf(request.network)
    if (network.config.chainId !== record.spec.chainId)
      throw stall(
        'WrongChain',
        `The deposit's transaction was made for chain id ${record.spec.chainId}, and network ${request.network} has chain id ${network.config.chainId} now. It is followed where it was made; nothing is signed.`,
      )
    const signer = await admittedSigner(request, signal, fresh)
    if (!sameHex(signer.spec.address, record.spec.from))
      throw stall(
        'SignerChanged',
        `StakingSigner ${signer.metadata.name} has address ${signer.spec.address} now, and the transaction was made for ${record.spec.from}. It is followed to its end; nothing is signed with another key before.`,
      )
    const fields = fieldsIn(record)
    verifyFields(request, fields, network)
    const { call } = record.spec
    if (
      call === undefined ||
      !sameHex(call.to, network.config.depositContractAddress) ||
      call.valueWei !== gweiToWei(fields.amountGwei).toString()
    )
      throw stall('VerificationFailed', `StakingTransaction ${record.metadata.name} does not pay the deposit contract. Nothing was signed.`)
    return { signer, feeCap: capOf(signer, spec.maxFeePerGasGwei) }
  }

  /**
   * Deposits for the key on the chain, in order. `isOpen`: one of the versions under the nonce in use made it. `isOurs`: it was made by the lane's own
   * address with this very call, or stands in the record.
   */
  async function deposits(record: RecordObject, signal: AbortSignal) {
    const { chain } = networkOfRecord(record)
    const found = await chain.depositsFor(record.spec.subject as Hex, signal)
    return Promise.all(
      found.map(async ({ transactionHash: hash }) => {
        const isIn = (attempts: readonly { readonly hash: string }[]) => attempts.some((attempt) => sameHex(attempt.hash, hash))
        const transaction = await chain.transaction(hash, signal)
        const sameCall = transaction !== undefined && isThisCall(transaction, record)
        const isOurs = isIn(attemptsOf(recordOf(record))) || (sameCall && sameHex(transaction.from, record.spec.from))
        return { hash, isOpen: isIn(openAttempts(recordOf(record))), isOurs, sameCall, transaction }
      }),
    )
  }

  return {
    purposes: ['Deposit'],
    what: 'The deposit',
    gasLimit: depositGasLimit,
    maxGas: maxDepositGas,
    remakeAfterRevert: false,
    // The audit trail of what was staked, and what keeps a validator from being paid twice.
    keepsRecords: true,
    mayBeSigned,

    async witnesses(record, signal) {
      const { api, chain } = networkOfRecord(record)
      const { apiId } = record.spec
      const hash = apiId === undefined ? undefined : (await api.ethereumStake(apiId, signal)).transaction.hash
      const told = hash === undefined ? undefined : await chain.transaction(hash, signal)
      const [done] = await deposits(record, signal)
      return {
        told:
          hash === undefined
            ? undefined
            : { hash, transaction: told && { hash, from: told.from, nonce: told.nonce, sameCall: isThisCall(told, record) } },
        done:
          done === undefined
            ? undefined
            : { hash: done.hash, from: done.transaction?.from ?? '', nonce: done.transaction?.nonce ?? 0, sameCall: done.sameCall },
      }
    },

    async tell(record, { hash, from, nonce }, signal) {
      if (record.spec.apiId !== undefined)
        await networkOfRecord(record).api.submitEthereumStake(record.spec.apiId, hash, signal, { from, nonce })
    },

    async judge(record, receipt, signal) {
      const network = networkOfRecord(record)
      if (!paysDeposit(receipt, fieldsIn(record), network)) return 'nothing'
      const history = await deposits(record, signal)
      const at = history.findIndex(({ hash }) => sameHex(hash, receipt.hash))
      if (at < 0)
        throw wait('HistorySyncing', "The deposit's transaction is final; the contract's history does not show its deposit yet.", 5_000)
      return history.slice(0, at).every(({ isOurs }) => isOurs) ? 'it' : 'second'
    },

    async overtaken(record, signal): Promise<Halt | undefined> {
      const history = await deposits(record, signal)
      const own = history.findIndex(({ isOpen }) => isOpen)
      const earlier = own < 0 ? history : history.slice(0, own)
      const others = earlier.filter(({ isOurs }) => !isOurs)
      const [first] = others
      if (first !== undefined) {
        deps.onRefusal?.('PubkeyAlreadyDeposited')
        return stall(
          'PubkeyAlreadyDeposited',
          `The deposit contract has ${others.length === 1 ? 'a deposit' : `${others.length} deposits`} for this public key that this resource did not make (transaction ${first.hash}). Paying it again would top up a validator whose withdrawal address others may have fixed. Find out who made that deposit; to stake, delete this resource and create one under another name: it gets a key of its own.`,
        )
      }
      const [made] = earlier
      // Paid by this very call, in a transaction that is not under the nonce in use: another would pay a second time.
      return record.status?.place === undefined || made === undefined
        ? undefined
        : wait(
            'Cancelling',
            `Transaction ${made.hash} has made this deposit already; the one under nonce ${record.status.place} is cancelled.`,
            12_000,
          )
    },

    async value(record) {
      const value = gweiToWei(fieldsIn(record).amountGwei)
      return { value, least: value }
    },
  }
}
