import { ChainError, type Hex } from '../../../chains/ethereum/chain.ts'
import { isContract } from '../../../chains/ethereum/unspendable.ts'
import { type ClaimedDeposit, type ClaimedTransaction, verifyDeposit } from '../../../chains/ethereum/verify-deposit.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumTransaction } from '../../../resources/ethereum-transaction.ts'
import type { Perform } from '../../engine/step.ts'
import { briefWait, stall, wait } from '../../engine/verdict.ts'
import { WATCH_ONLY } from '../../engine/visit.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import type { LegacyKind } from '../../transactions/legacy/kind.ts'
import { mirrorOf } from '../../transactions/mirror.ts'
import { pending } from '../../transactions/owner.ts'
import { attemptsOf, closedOf, mayBeHandedOver } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { createDepositEvidence, evidenceOf, fieldsOf } from './evidence.ts'
import { createLegacyDeposits } from './legacy.ts'
import { createDepositRequests, type EthereumStakeDeps } from './request.ts'
import type { EthereumStakeEffects, StakeRequest } from './steps.ts'
import { callHash, createDepositKind, depositName, depositSpec, ownDeposit } from './transaction.ts'

/** The effects of an EthereumStake's saga, and what the log asks of its deposits. */
export function createEthereumStakeEffects(deps: EthereumStakeDeps): {
  readonly effects: Perform<EthereumStakeEffects>
  readonly deposits: TransactionKind
  readonly legacy: LegacyKind
} {
  const { log } = deps
  const requests = createDepositRequests(deps)
  const evidence = createDepositEvidence(deps, requests)
  const { networkOf, addressOf, admittedSigner, serviceStake, expectedOf } = requests
  const { refuse, verifyFields } = evidence

  const isBegun = ({ status }: RecordObject): boolean => status?.place !== undefined || status?.outcome !== undefined

  const mirrored = (record: RecordObject, shown: EthereumTransaction | undefined) => ({
    transaction: mirrorOf(
      { record, dataHash: callHash(record), wasSent: (hash) => log.wasSent(record, hash), wasTold: (hash) => log.wasTold(record, hash) },
      shown,
    ),
  })

  /** The stake of a resource that is watched only and has lost its status: nothing is created, the log's own is read again. */
  async function loggedStake({ origin, network }: StakeRequest, signal: AbortSignal) {
    const own = ownDeposit(log, origin)
    if (own?.spec.apiId === undefined) throw wait('Suspended', 'Nothing was ever signed for it.', 60_000)
    const body = await networkOf(network).api.ethereumStake(own.spec.apiId, signal)
    if (!sameHex(body.depositData.pubkey, own.spec.subject))
      throw stall('VerificationFailed', `The staking API has another validator as stake ${own.spec.apiId} than the log. Nothing is signed.`)
    return evidenceOf(body)
  }

  /** Whether the money goes to a contract in the end: nothing is refused for that, and a person should know. Undefined where no node tells. */
  async function paysContract(request: StakeRequest, signal: AbortSignal): Promise<boolean | undefined> {
    try {
      return isContract(await networkOf(request.network).chain.code(addressOf(request), signal))
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ChainError) return undefined
      throw error
    }
  }

  /** Whether what the staking API calls reported or paid is proven to be others' doing: every deposit for the key is shown, and was sent with no key of ours. */
  async function isByOthers(
    network: string,
    pubkey: Hex,
    reported: Hex | undefined,
    records: readonly RecordObject[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { chain } = networkOf(network)
    const ours = [...[...deps.signers.list()].map(({ spec }) => spec.address), ...records.map(({ spec }) => spec.from)]
    const deposits = (await chain.depositsFor(pubkey, signal)).map(({ transactionHash }) => transactionHash)
    const hashes = new Set([...deposits, ...(reported === undefined ? [] : [reported])].map((hash) => hash.toLowerCase() as Hex))
    const senders = await Promise.all([...hashes].map(async (hash) => (await chain.transaction(hash, signal))?.from))
    return senders.length > 0 && senders.every((from) => from !== undefined && !ours.some((own) => sameHex(own, from)))
  }

  const effects: Perform<EthereumStakeEffects> = {
    async createStake(request, visit, signal) {
      if (visit.get(WATCH_ONLY) === true) return loggedStake(request, signal)
      networkOf(request.network)
      addressOf(request)
      await admittedSigner(request, signal)
      deps.assertMayAct()
      const body = await serviceStake(request, visit, signal)
      return evidenceOf(body)
    },

    async verifyDeposit({ request, stakeId, depositData, tentative }, visit, signal) {
      const network = networkOf(request.network)
      const body = await serviceStake(request, visit, signal)
      const given = body.depositData
      const same =
        body.stakeId === stakeId &&
        sameHex(given.pubkey, depositData.pubkey) &&
        sameHex(given.signature, depositData.signature) &&
        sameHex(given.withdrawalCredentials, depositData.withdrawalCredentials) &&
        given.amountGwei.toString() === depositData.amountGwei &&
        sameHex(given.depositDataRoot, depositData.depositDataRoot)
      // Of a service that lied before and now tells the truth, the truth is taken: nothing stands on the lie yet.
      if (!same && !tentative)
        throw stall(
          'VerificationFailed',
          `status.stakeId or status.depositData is not what the staking API gave for this resource. Nothing was signed. Remove status.stakeId and status.depositData: they are read again.`,
        )
      const mismatches = verifyDeposit({
        expected: expectedOf(request, network),
        depositData: given as ClaimedDeposit,
        unsignedTransaction: body.unsignedTransaction as ClaimedTransaction,
      })
      const adopted = request.adoptStakeId !== undefined
      refuse(
        [
          ...mismatches,
          ...(request.network === body.network ? [] : [{ code: 'network', message: 'the network is another' }]),
          // A service that mixes stakes up must not have one resource shown as paid by the deposit of another.
          ...(adopted || body.externalReference === undefined || body.externalReference === request.externalReference
            ? []
            : [{ code: 'reference', message: 'the stake belongs to another resource: its external reference is another' }]),
          // A stake that another namespace's resource has made is not taken from it.
          ...(!adopted || mayAdopt(body.externalReference, request.origin.namespace)
            ? []
            : [{ code: 'reference', message: `it was made for ${body.externalReference}, in another namespace` }]),
        ],
        adopted ? `Stake ${body.stakeId}` : "The staking API's answer",
        adopted ? 'AdoptionMismatch' : 'VerificationFailed',
      )
      return { verifiedRoot: given.depositDataRoot, ...evidenceOf(body), withdrawalAddressIsContract: await paysContract(request, signal) }
    },

    async followDeposit(plan, visit, signal) {
      const own = ownDeposit(log, plan.request.origin)
      let record = own
      let found: ReturnType<typeof evidenceOf> | undefined
      if (visit.get(WATCH_ONLY) !== true && (own === undefined || !isBegun(own))) {
        const network = networkOf(plan.request.network)
        const signer = await admittedSigner(plan.request, signal)
        // By what the staking API says and the spec admits, whatever status says: that may have been written by anybody.
        found = evidenceOf(await serviceStake(plan.request, visit, signal))
        verifyFields(plan.request, fieldsOf(found), network)
        const spec = depositSpec({ request: plan.request, ...found }, network, signer)
        record = await log.ensure(depositName(network.config.chainId, spec.subject), spec, signal)
      }
      if (record === undefined) throw wait('Suspended', 'Nothing was ever signed for it.', 60_000).with({ transaction: undefined })
      const outcome = record.status?.outcome
      // The cache holds what landed without its versions.
      if (outcome !== undefined) record = await log.whole(record, signal)
      const evidence = { ...mirrored(record, plan.shown), ...(found === undefined ? {} : { found }) }
      if (outcome === undefined) {
        const standing = log.standing(record.metadata.name)
        const isNew = own === undefined && standing === undefined
        throw (isNew ? briefWait('InProgress', `${DEPOSIT} is about to be made.`, BRIEF_MS) : pending(standing, DEPOSIT)).with(evidence)
      }
      return evidence
    },

    async undoStake({ network, stakeId, externalReference }, _visit, signal) {
      const { api } = networkOf(network)
      const look = () =>
        api.ethereumStake(stakeId, signal).catch((error: unknown) => {
          if (error instanceof StakingApiError && error.status === 404) return undefined
          throw error
        })
      // One that is another's is left alone: somebody changed status, or it was adopted.
      const body = await look()
      if (body === undefined || body.externalReference !== externalReference) return { cancelled: true }
      try {
        deps.assertMayAct()
        await api.cancelEthereumStake(stakeId, signal)
        return { cancelled: true }
      } catch (error) {
        if (!(error instanceof StakingApiError) || error.code !== 'invalid-state') throw error
      }
      const { transaction } = (await look()) ?? body
      // Another look of ours, or another's.
      if (transaction.status === 'cancelled' || transaction.status === 'failed') return { cancelled: true }
      const records = log.ofSubject(body.depositData.pubkey)
      const isKnown = records.some((record) =>
        [...attemptsOf(recordOf(record)), ...closedOf(recordOf(record))].some(({ hash }) => sameHex(hash, transaction.hash ?? '')),
      )
      // Told, and proven closed: nothing of it can land, and only the name stays taken.
      if (isKnown && records.every((record) => mayBeHandedOver(recordOf(record)))) return { cancelled: true }
      if (await isByOthers(network, body.depositData.pubkey as Hex, transaction.hash as Hex | undefined, records, signal))
        return { cancelled: true }
      throw stall(
        'UnknownSubmission',
        `The staking API says that stake ${stakeId} was reported or paid${transaction.hash === undefined ? '' : ` (transaction ${transaction.hash})`}, and the log knows of no transaction of it that may land. Look for a deposit for ${body.depositData.pubkey} before you let this resource go.`,
      )
    },

    async reportDeposit({ network, stakeId, hash }, _visit, signal) {
      await networkOf(network).api.submitEthereumStake(stakeId, hash as Hex, signal)
      return { reportedHash: hash }
    },
  }
  return { effects, deposits: createDepositKind(deps, requests, evidence), legacy: createLegacyDeposits(requests, evidence) }
}

const DEPOSIT = 'The deposit transaction'
/** A new record is looked after by its lane at once, which wakes its owner: shown before that only where it takes longer than this, in ms. */
const BRIEF_MS = 1_000

/** Whether a stake of this external reference may be adopted from a namespace: one that no resource has made, or one that was made there. */
const mayAdopt = (reference: string | undefined, namespace: string): boolean =>
  reference === undefined || !reference.startsWith('EthereumStake/') || reference.startsWith(`EthereumStake/${namespace}/`)
