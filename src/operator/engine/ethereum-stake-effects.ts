import { keccak256 } from 'viem'
import {
  type Address,
  ChainError,
  type ChainHead,
  type ChainReceipt,
  type ChainTransaction,
  type EthereumChain,
  type Hex,
  type UnsignedTransaction,
} from '../../chains/ethereum/chain.ts'
import { decodeDepositLog, depositEventTopic, depositMessageRoot, encodeDepositCalldata } from '../../chains/ethereum/deposit.ts'
import { depositGasLimit } from '../../chains/ethereum/deposit-gas.ts'
import { bumpFees, type Fees, priceTransaction } from '../../chains/ethereum/fees.ts'
import { type ClaimedDeposit, type ClaimedTransaction, type ExpectedDeposit, verifyDeposit } from '../../chains/ethereum/verify-deposit.ts'
import type { EthereumStakeBody } from '../../contract/schemas/ethereum-stake.ts'
import { AmountError, formatWeiAsGwei, type Gwei, gweiToWei, parseEth, type Wei, wei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { StakeTransaction, TransactionAttempt } from '../../resources/ethereum-stake.ts'
import type { InFlight, StakingSigner } from '../../resources/staking-signer.ts'
import type { EthereumKeys, EthereumNetwork, Networks } from '../ports.ts'
import {
  attemptsOf,
  type BroadcastOutcome,
  type ConfirmOutcome,
  type DepositPlan,
  type EthereumStakeEffects,
  type InFlightDeposit,
  type StakeRequest,
} from '../sagas/ethereum-stake.ts'
import type { Origin } from '../sagas/origin.ts'
import { admitDeposit, checkAddress, feeCap, type NamespaceFacts, sameAddress } from '../sagas/policy.ts'
import { conflict, Halt, stall, wait } from '../sagas/verdict.ts'
import type { SignerLedger, SignerStore } from './signer-ledger.ts'
import { type Visit, WATCH_ONLY } from './visit.ts'

export interface EthereumStakeDeps {
  readonly networks: Networks
  readonly signers: SignerStore
  readonly ledger: SignerLedger
  readonly keys: EthereumKeys
  readonly clock: Clock
  /** The namespace as policy sees it now. */
  readonly namespace: (name: string) => NamespaceFacts
  /** Whether another, older signer declares the same address. */
  readonly duplicateOf: (signer: StakingSigner) => string | undefined
  /** Whether another resource has this stake. Asked for adopted stakes only: what a resource created by its own idempotency key is its own. */
  readonly otherHolder: (stakeId: string, origin: Origin) => boolean
  /** Throws unless this process may act now: it leads, and the installed CRDs are what it was built for. Asked before every signature and broadcast. */
  readonly assertMayAct: () => void
  readonly onRefusal?: (reason: string) => void
}

/** Performs one effect. `visit` lives for one reconcile: what the service said in it need not be asked twice. */
export type Perform<Effects> = {
  readonly [Name in keyof Effects]: (
    args: Effects[Name] extends { args: infer A } ? A : never,
    visit: Visit,
    signal: AbortSignal,
  ) => Promise<Effects[Name] extends { result: infer R } ? R : never>
}

const STEP = 'stake'

/** A deposit costs some 60,000 gas; an estimate far above that is not a deposit. */
const MAX_DEPOSIT_GAS = 1_000_000n

export function createEthereumStakeEffects(deps: EthereumStakeDeps): Perform<EthereumStakeEffects> {
  const { clock, keys, ledger, signers } = deps

  function networkOf(name: string): EthereumNetwork {
    const network = deps.networks.ethereum(name)
    if (network === undefined) {
      const known = deps.networks.names()
      throw stall(
        'UnknownNetwork',
        `The operator has no Ethereum network "${name}"${known.length === 0 ? '' : `; it has ${known.join(', ')}`}. Add it to the operator's networks file, or create this resource with another network.`,
      )
    }
    return network
  }

  function amountOf(request: StakeRequest): Gwei {
    if (request.credentialsType !== 'Compounding' && request.credentialsType !== 'Execution')
      throw stall('InvalidSpec', 'spec.credentialsType is neither Compounding nor Execution.', false)
    try {
      const amount = parseEth(request.amountEth)
      const min = parseEth('32')
      const max = request.credentialsType === 'Execution' ? min : parseEth('2048')
      if (amount < min || amount > max)
        throw new AmountError(
          `${request.amountEth} ETH is not ${request.credentialsType === 'Execution' ? '32 ETH, as Execution credentials need' : 'between 32 and 2048 ETH'}`,
        )
      return amount
    } catch (error) {
      if (error instanceof AmountError) throw stall('InvalidSpec', `spec.amountEth: ${error.message}.`, false)
      throw error
    }
  }

  function capOf(signer: StakingSigner, ownCapGwei: string | undefined): Wei {
    try {
      return feeCap(signer, ownCapGwei)
    } catch (error) {
      if (error instanceof AmountError) throw stall('InvalidSpec', `maxFeePerGasGwei: ${error.message}.`, false)
      throw error
    }
  }

  function addressOf(request: StakeRequest): Address {
    const address = request.withdrawalAddress as Address
    if (!/^0x[0-9a-fA-F]{40}$/.test(address) || /^0x0{40}$/.test(address))
      throw stall('InvalidSpec', 'spec.withdrawalAddress is not an address that can be paid.', false)
    const wrong = checkAddress(address)
    if (wrong !== undefined)
      throw stall('InvalidSpec', `spec.withdrawalAddress: ${wrong} Delete this resource and create it with the right address.`, false)
    return address
  }

  const credentialsTypeOf = (request: StakeRequest): '0x01' | '0x02' => (request.credentialsType === 'Execution' ? '0x01' : '0x02')

  /** The signer, admitted by its policy for this resource as both stand now. */
  async function admittedSigner(request: StakeRequest, signal: AbortSignal): Promise<StakingSigner> {
    const signer = signers.get(request.signer)
    if (signer === undefined)
      throw stall('SignerNotFound', `There is no StakingSigner ${request.signer}. Create it, or create this resource with another signer.`)
    const refusal = admitDeposit(signer, {
      namespace: deps.namespace(request.origin.namespace),
      withdrawalAddress: request.withdrawalAddress,
      amountGwei: amountOf(request),
    })
    if (refusal !== undefined) {
      deps.onRefusal?.(refusal.reason)
      throw stall(refusal.reason, refusal.message)
    }
    const twin = deps.duplicateOf(signer)
    if (twin !== undefined)
      throw stall(
        'DuplicateSigner',
        `StakingSigner ${twin} declares the same address as ${request.signer} and is older. Two ledgers over one nonce sequence are not allowed: delete one of them.`,
      )
    const address = await keys.address(signer.spec.keyName, signal)
    if (!sameAddress(address, signer.spec.address)) {
      throw stall(
        'KeyAddressMismatch',
        `The key mounted as ${signer.spec.keyName} belongs to ${address}, but StakingSigner ${request.signer} declares ${signer.spec.address}. Nothing was signed. Mount the right key.`,
      )
    }
    return signer
  }

  /** What the service says of the stake: by the idempotent creation itself, so that it is the one of this resource and no other. */
  async function serviceStake(request: StakeRequest, visit: Visit, signal: AbortSignal): Promise<EthereumStakeBody> {
    const said = visit.get('stake')
    if (said !== undefined) return said as EthereumStakeBody
    const { api } = networkOf(request.network)
    const body =
      request.adoptStakeId === undefined
        ? await api.createEthereumStake(
            {
              idempotencyKey: request.idempotencyKey,
              network: request.network,
              amountGwei: amountOf(request),
              withdrawalAddress: addressOf(request),
              credentialsType: credentialsTypeOf(request),
              externalReference: request.externalReference,
            },
            signal,
          )
        : await api.ethereumStake(request.adoptStakeId, signal)
    visit.set('stake', body)
    return body
  }

  const expectedOf = (request: StakeRequest, network: Pick<EthereumNetwork, 'config'>): ExpectedDeposit => ({
    network: network.config,
    withdrawalAddress: addressOf(request),
    credentialsType: credentialsTypeOf(request),
    amountGwei: amountOf(request),
  })

  function refuse(
    mismatches: readonly { readonly code: string; readonly message: string }[],
    whose: string,
    reason: 'VerificationFailed' | 'AdoptionMismatch' = 'VerificationFailed',
  ): void {
    if (mismatches.length === 0) return
    deps.onRefusal?.('VerificationFailed')
    throw stall(
      reason,
      `${whose} does not match this resource's spec: ${mismatches.map((mismatch) => mismatch.message).join('; ')}. Nothing was signed. ${reason === 'AdoptionMismatch' ? 'Name a stake that matches, or leave spec.adopt out.' : 'Do not work around this: find out why the staking API answers so.'}`,
    )
  }

  const evidenceOf = ({ stakeId, depositData }: EthereumStakeBody) => {
    const { pubkey, withdrawalCredentials, amountGwei, signature, depositDataRoot } = depositData
    return { stakeId, depositData: { pubkey, withdrawalCredentials, amountGwei: amountGwei.toString(), signature, depositDataRoot } }
  }

  const fieldsOf = ({ depositData }: { depositData: DepositPlan['depositData'] }) => ({
    pubkey: depositData.pubkey as Hex,
    withdrawalCredentials: depositData.withdrawalCredentials as Hex,
    amountGwei: BigInt(depositData.amountGwei) as Gwei,
    signature: depositData.signature as Hex,
    depositDataRoot: depositData.depositDataRoot as Hex,
  })

  /** Everything that must hold of a deposit at every signature, from the spec and the network's constants; status is checked, not trusted. */
  function verifyFields(plan: DepositPlan, { config }: Pick<EthereumNetwork, 'config'>): void {
    const fields = fieldsOf(plan)
    const { chainId, depositContractAddress, genesisForkVersion } = config
    const depositData = {
      ...fields,
      depositMessageRoot: depositMessageRoot(fields),
      forkVersion: genesisForkVersion,
      depositContractAddress,
      chainId,
    }
    const unsignedTransaction = { chainId, to: depositContractAddress, data: calldataOf(plan), valueWei: gweiToWei(fields.amountGwei) }
    refuse(
      verifyDeposit({ expected: expectedOf(plan.request, { config }), depositData, unsignedTransaction }),
      'The deposit data in status',
    )
  }

  /** Deposits of this key on the chain. Any that this resource's own transaction didn't make means that the key must not be paid. */
  async function ownDeposit(plan: DepositPlan, network: EthereumNetwork, known: ReadonlySet<string>, signer: string, signal: AbortSignal) {
    const deposits = await network.chain.depositsFor(plan.depositData.pubkey as Hex, signal)
    if (deposits.length === 0) return undefined
    const [first, ...more] = deposits
    const fields = fieldsOf(plan)
    if (
      first !== undefined &&
      more.length === 0 &&
      first.amountGwei === fields.amountGwei &&
      equalHex(first.withdrawalCredentials, fields.withdrawalCredentials) &&
      equalHex(first.signature, fields.signature)
    ) {
      const transaction = await network.chain.transaction(first.transactionHash, signal)
      // Found by its hash, or by its content: the very deposit of this stake, paid by this very signer.
      if (
        transaction &&
        (known.has(first.transactionHash.toLowerCase()) ||
          (sameAddress(transaction.from, signer) && equalHex(transaction.data, calldataOf(plan))))
      )
        return transaction
    }
    deps.onRefusal?.('PubkeyAlreadyDeposited')
    throw stall(
      'PubkeyAlreadyDeposited',
      `The deposit contract has ${deposits.length === 1 ? 'a deposit' : `${deposits.length} deposits`} for this public key that this resource did not make (transaction ${first?.transactionHash}). Paying it again would top up a validator whose withdrawal address others may have fixed. Nothing was signed. Find out who made that deposit; to stake, delete this resource and create one under another name: it gets a key of its own.`,
    )
  }

  const calldataOf = (plan: DepositPlan): Hex => encodeDepositCalldata(fieldsOf(plan))

  function unsigned(
    plan: DepositPlan,
    network: EthereumNetwork,
    attempt: { nonce: number; gas: bigint; maxFeePerGas: Wei; maxPriorityFeePerGas: Wei },
  ): UnsignedTransaction {
    const { amountGwei } = fieldsOf(plan)
    return {
      chainId: network.config.chainId,
      to: network.config.depositContractAddress,
      data: calldataOf(plan),
      valueWei: gweiToWei(amountGwei),
      ...attempt,
    }
  }

  /** What can be said of a transaction that was found on the chain: its fees are not needed any more. */
  const recordOfLanded = (landed: ChainTransaction, network: EthereumNetwork): StakeTransaction => ({
    chainId: network.config.chainId,
    from: landed.from,
    to: network.config.depositContractAddress,
    valueWei: landed.valueWei.toString(),
    dataHash: keccak256(landed.data),
    nonce: landed.nonce,
    gas: '0',
    maxFeePerGasWei: '0',
    maxPriorityFeePerGasWei: '0',
    hash: landed.hash,
    preparedAt: timestamp(clock.now()),
    broadcastHash: landed.hash,
    state: 'Broadcast',
  })

  /** Looks for the deposit on the chain, made by this transaction in a version that status knows, or by one that it doesn't (any more). */
  async function foundOnChain(deposit: InFlightDeposit, network: EthereumNetwork, signal: AbortSignal) {
    const { transaction, request } = deposit
    const attempts = attemptsOf(transaction).map((attempt) => attempt.hash.toLowerCase())
    const known = new Set([...attempts, ...deposit.superseded.map((attempt) => attempt.hash.toLowerCase())])
    const landed = await ownDeposit(deposit, network, known, signers.get(request.signer)?.spec.address ?? transaction.from, signal)
    if (landed === undefined || attempts.includes(landed.hash.toLowerCase())) return { landed, outcome: undefined }
    // The one in status must not be sent any more: it would be a second deposit. Others may use its nonce.
    if (landed.nonce !== transaction.nonce) ledger.release(request.signer, network.config.name, request.origin.uid, STEP)
    return { landed, outcome: { is: 'found', transaction: recordOfLanded(landed, network) } as const }
  }

  async function sign(signer: StakingSigner, transaction: UnsignedTransaction, signal: AbortSignal) {
    deps.assertMayAct()
    return keys.signTransaction(signer.spec.keyName, signer.spec.address as Address, transaction, signal)
  }

  const priceOf = async (chain: EthereumChain, cap: Wei, signal: AbortSignal): Promise<Fees> => {
    const [head, tip] = await Promise.all([chain.head(signal), chain.priorityFee(signal)])
    const price = priceTransaction({ market: { baseFeePerGas: head.baseFeePerGas, priorityFeePerGas: tip }, cap })
    if (price.kind === 'wait') throw tooDear(cap)
    return { maxFeePerGas: price.maxFeePerGas, maxPriorityFeePerGas: price.maxPriorityFeePerGas }
  }
  const tooDear = (cap: Wei) =>
    wait(
      'FeeTooHigh',
      `A gas unit costs more than the cap of ${formatWeiAsGwei(cap)} gwei allows now. It goes on when the price falls, or when maxFeePerGasGwei (of this resource or the signer's policy) is raised.`,
      12_000,
    )

  const recordOf = (plan: DepositPlan, network: EthereumNetwork, signer: StakingSigner, entry: InFlight): StakeTransaction => {
    const transaction = unsigned(plan, network, {
      nonce: entry.nonce,
      gas: BigInt(entry.gas),
      maxFeePerGas: wei(BigInt(entry.maxFeePerGasWei)),
      maxPriorityFeePerGas: wei(BigInt(entry.maxPriorityFeePerGasWei)),
    })
    const earlier = (entry.earlierHashes ?? []).map((hash) => ({
      hash,
      nonce: entry.nonce,
      gas: entry.gas,
      maxFeePerGasWei: '0',
      maxPriorityFeePerGasWei: '0',
      preparedAt: entry.recordedAt,
    }))
    return {
      chainId: transaction.chainId,
      from: signer.spec.address,
      to: transaction.to,
      valueWei: transaction.valueWei.toString(),
      dataHash: keccak256(transaction.data),
      hash: entry.hash,
      nonce: entry.nonce,
      gas: entry.gas,
      maxFeePerGasWei: entry.maxFeePerGasWei,
      maxPriorityFeePerGasWei: entry.maxPriorityFeePerGasWei,
      preparedAt: entry.recordedAt,
      ...(earlier.length === 0 ? {} : { replaced: earlier }),
      state: 'Prepared',
    }
  }

  /** Compares what status says of the transaction with what it must be. @returns the transaction rebuilt from spec, deposit data and network. */
  function rebuilt(deposit: InFlightDeposit, network: EthereumNetwork, signer: StakingSigner): UnsignedTransaction {
    const { transaction } = deposit
    const expected = unsigned(deposit, network, {
      nonce: transaction.nonce,
      gas: BigInt(transaction.gas),
      maxFeePerGas: wei(BigInt(transaction.maxFeePerGasWei)),
      maxPriorityFeePerGas: wei(BigInt(transaction.maxPriorityFeePerGasWei)),
    })
    const wrong: string[] = []
    if (transaction.chainId !== expected.chainId) wrong.push('chainId')
    if (!sameAddress(transaction.to, expected.to)) wrong.push('to')
    if (transaction.valueWei !== expected.valueWei.toString()) wrong.push('valueWei')
    if (transaction.dataHash !== keccak256(expected.data)) wrong.push('dataHash')
    if (!sameAddress(transaction.from, signer.spec.address)) wrong.push('from')
    if (expected.gas > MAX_DEPOSIT_GAS) wrong.push('gas')
    if (wrong.length > 0) throw forged(wrong.map((field) => `transaction.${field}`).join(', '))
    return expected
  }
  const forged = (what: string) => {
    deps.onRefusal?.('VerificationFailed')
    return stall(
      'VerificationFailed',
      `status.${what} is not what spec, deposit data and the signer's ledger say: somebody changed it. Nothing was signed. Put the right value back, or remove status.transaction: it is made again from the ledger, under the same nonce.`,
    )
  }

  /**
   * The signed bytes of the current version, checked on every side: policy, deposit data, ledger, hash. Where the ledger has a newer version (its
   * write was the last thing that happened), that one: status follows first.
   */
  async function signedAgain(deposit: InFlightDeposit, network: EthereumNetwork, signal: AbortSignal) {
    const signer = await admittedSigner(deposit.request, signal)
    verifyFields(deposit, network)
    const transaction = rebuilt(deposit, network, signer)
    const entry = await ledger.claim(deposit.request.signer, network.config.name, deposit.request.origin.uid, STEP)
    if (entry === undefined) {
      const holder = ledger.holder(deposit.request.signer, network.config.name, transaction.nonce)
      if (holder === undefined) throw forged('transaction')
      throw wait(
        'WaitingForNonce',
        `Nonce ${transaction.nonce} was given to another transaction while this one was stopped. Once that one is final, this one gets a new nonce.`,
        network.config.pollIntervalMs,
      )
    }
    if (entry.nonce !== transaction.nonce) throw forged('transaction.nonce')
    if (!equalHex(entry.hash, deposit.transaction.hash)) {
      if (entry.earlierHashes?.some((hash) => equalHex(hash, deposit.transaction.hash)))
        return { is: 'behind', attempt: attemptIn(entry) } as const
      throw forged('transaction.hash')
    }
    // The hash covers them, and yet: what status says alone is not even signed.
    if (deposit.transaction.gas !== entry.gas) throw forged('transaction.gas')
    if (deposit.transaction.maxFeePerGasWei !== entry.maxFeePerGasWei) throw forged('transaction.maxFeePerGasWei')
    if (deposit.transaction.maxPriorityFeePerGasWei !== entry.maxPriorityFeePerGasWei) throw forged('transaction.maxPriorityFeePerGasWei')
    if (transaction.maxFeePerGas > capOf(signer, deposit.maxFeePerGasGwei)) {
      throw wait(
        'FeeTooHigh',
        `The prepared transaction pays up to ${formatWeiAsGwei(transaction.maxFeePerGas)} gwei per gas, and maxFeePerGasGwei (of this resource or of the signer's policy) was lowered below that. Raise it again to let it go.`,
        30_000,
      )
    }
    const signed = await sign(signer, transaction, signal)
    if (!equalHex(signed.hash, deposit.transaction.hash)) throw forged('transaction')
    return { is: 'signed', signer, transaction, raw: signed.raw } as const
  }

  const attemptIn = (entry: InFlight): TransactionAttempt => ({
    hash: entry.hash,
    nonce: entry.nonce,
    gas: entry.gas,
    maxFeePerGasWei: entry.maxFeePerGasWei,
    maxPriorityFeePerGasWei: entry.maxPriorityFeePerGasWei,
    preparedAt: timestamp(clock.now()),
  })

  /** A version of the transaction that pays at least 10 % more, recorded in the ledger. */
  async function bump(deposit: InFlightDeposit, network: EthereumNetwork, signal: AbortSignal): Promise<TransactionAttempt> {
    const current = await signedAgain(deposit, network, signal)
    if (current.is === 'behind') return current.attempt
    const { signer, transaction } = current
    const [head, tip] = await Promise.all([network.chain.head(signal), network.chain.priorityFee(signal)])
    const cap = capOf(signer, deposit.maxFeePerGasGwei)
    const bumped = bumpFees({ previous: transaction, market: { baseFeePerGas: head.baseFeePerGas, priorityFeePerGas: tip }, cap })
    if (bumped.kind !== 'fees') {
      throw wait(
        'FeeTooHigh',
        `Transaction ${deposit.transaction.hash} is too cheap to be mined now, and a replacement would cost more than the cap of ${formatWeiAsGwei(cap)} gwei per gas. It goes on when the price falls, or when maxFeePerGasGwei is raised.`,
        network.config.pollIntervalMs,
      )
    }
    const fees: Fees = { maxFeePerGas: bumped.maxFeePerGas, maxPriorityFeePerGas: bumped.maxPriorityFeePerGas }
    const next: UnsignedTransaction = { ...transaction, ...fees }
    const signed = await sign(signer, next, signal)
    const entry = await ledger.replace(deposit.request.signer, network.config.name, deposit.request.origin.uid, STEP, {
      gas: next.gas,
      ...fees,
      hash: signed.hash,
    })
    return attemptIn(entry)
  }

  return {
    async createStake(request, visit, signal) {
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
        equalHex(given.pubkey, depositData.pubkey) &&
        equalHex(given.signature, depositData.signature) &&
        equalHex(given.withdrawalCredentials, depositData.withdrawalCredentials) &&
        given.amountGwei.toString() === depositData.amountGwei &&
        equalHex(given.depositDataRoot, depositData.depositDataRoot)
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
        ],
        adopted ? `Stake ${body.stakeId}` : "The staking API's answer",
        adopted ? 'AdoptionMismatch' : 'VerificationFailed',
      )
      return { verifiedRoot: given.depositDataRoot, ...evidenceOf(body) }
    },

    async prepareDeposit(plan, visit, signal) {
      const network = networkOf(plan.request.network)
      const signer = await admittedSigner(plan.request, signal)
      const body = await serviceStake(plan.request, visit, signal)
      if (body.stakeId !== plan.stakeId || !equalHex(body.depositData.pubkey, plan.depositData.pubkey)) {
        throw stall(
          'VerificationFailed',
          'status.stakeId is not the stake that the staking API has for this resource: somebody changed it. Nothing was signed. Remove status.stakeId and status.depositData: they are read again.',
        )
      }
      verifyFields(plan, network)
      if (plan.request.adoptStakeId !== undefined && deps.otherHolder(plan.stakeId, plan.request.origin))
        throw stall('AdoptionMismatch', `Stake ${plan.stakeId} belongs to another resource of this cluster already.`)
      const known = new Set(plan.superseded.map((attempt) => attempt.hash.toLowerCase()))
      const landed = await ownDeposit(plan, network, known, signer.spec.address, signal)
      if (landed !== undefined) {
        // Lost status, a rebuilt cluster or an adopted stake: the deposit was made. It is written down as it stands on the chain, or better:
        // as the ledger has it, so that it can be sent again after a reorg.
        const { signer: name, origin } = plan.request
        const entry = await ledger.claim(name, network.config.name, origin.uid, STEP)
        if (entry !== undefined && equalHex(entry.hash, landed.hash))
          return { ...recordOf(plan, network, signer, entry), broadcastHash: landed.hash, state: 'Broadcast' }
        if (entry !== undefined && entry.nonce !== landed.nonce) ledger.release(name, network.config.name, origin.uid, STEP)
        return recordOfLanded(landed, network)
      }
      const cap = capOf(signer, plan.maxFeePerGasGwei)
      const call = {
        from: signer.spec.address as Address,
        to: network.config.depositContractAddress,
        data: calldataOf(plan),
        valueWei: gweiToWei(fieldsOf(plan).amountGwei),
      }
      const fees = await priceOf(network.chain, cap, signal)
      let short: ChainError | undefined
      const estimate = await network.chain.estimateGas(call, signal).catch((error: unknown) => {
        // The ledger knows the numbers, so it is let to say what is missing.
        if (!(error instanceof ChainError) || error.code !== 'insufficient-funds') throw error
        short = error
        return 100_000n
      })
      const gas = depositGasLimit(estimate)
      if (gas > MAX_DEPOSIT_GAS)
        throw stall(
          'VerificationFailed',
          `The deposit would cost ${estimate} gas, far more than a deposit does: the contract at ${call.to} is not the deposit contract. Nothing was signed.`,
        )
      const entry = await ledger.reserve({
        signer: plan.request.signer,
        network: network.config.name,
        chain: network.chain,
        request: {
          origin: plan.request.origin.uid,
          kind: plan.request.origin.kind,
          namespace: plan.request.origin.namespace,
          name: plan.request.origin.name,
          step: STEP,
          pubkey: plan.depositData.pubkey,
        },
        valueWei: call.valueWei,
        costWei: wei(call.valueWei + gas * fees.maxFeePerGas),
        build: async ({ nonce, displaces }) => {
          if (short !== undefined) throw short
          // The ledger was read after the first look at the deposits: what has landed and been struck off in between is seen here.
          if ((await network.chain.depositsFor(plan.depositData.pubkey as Hex, signal)).length > 0) throw conflict()
          const chosen = displaces === undefined ? fees : over(feesOf(displaces), fees, cap)
          if (chosen === undefined)
            throw wait(
              'FeeTooHigh',
              `Nonce ${nonce} was prepared before at a fee near the cap of ${formatWeiAsGwei(cap)} gwei, and a replacement must pay 10 % more. Raise maxFeePerGasGwei.`,
              30_000,
            )
          const signed = await sign(signer, unsigned(plan, network, { nonce, gas, ...chosen }), signal)
          return { gas, ...chosen, hash: signed.hash }
        },
      })
      if (plan.superseded.some((attempt) => equalHex(attempt.hash, entry.hash)))
        throw wait(
          'WaitingForNonce',
          `Nonce ${entry.nonce} was used by another transaction, and the RPC nodes do not agree yet whether that is final.`,
          network.config.pollIntervalMs,
        )
      return recordOf(plan, network, signer, entry)
    },

    async broadcastDeposit(deposit, _visit, signal) {
      const network = networkOf(deposit.request.network)
      const { transaction } = deposit
      const sent: BroadcastOutcome = { is: 'sent', broadcastHash: transaction.hash }
      // It was sent before, and how that went was never written down. Also where it reverted: that leaves no deposit.
      for (const attempt of attemptsOf(transaction))
        if ((await network.chain.receipt(attempt.hash as Hex, signal)) !== undefined) return sent
      const { landed, outcome } = await foundOnChain(deposit, network, signal)
      if (landed !== undefined) return outcome ?? sent
      if (await nonceIsLost(deposit, network, signal)) return { is: 'superseded' }
      const signed = await signedAgain(deposit, network, signal)
      if (signed.is === 'behind') return { is: 'replaced', attempt: signed.attempt }
      deps.assertMayAct()
      try {
        await network.chain.broadcast(signed.raw, signal)
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        switch (error.code) {
          case 'already-known':
            break
          case 'nonce-too-low':
            // Used by one of ours or by another: Confirm finds out, at finality.
            break
          case 'replacement-underpriced':
          case 'underpriced':
            return { is: 'replaced', attempt: await bump(deposit, network, signal) }
          default:
            throw error
        }
      }
      return sent
    },

    async reportDeposit({ network, stakeId, hash }, _visit, signal) {
      await networkOf(network).api.submitEthereumStake(stakeId, hash as Hex, signal)
      return { reportedHash: hash }
    },

    async confirmDeposit(deposit, visit, signal): Promise<ConfirmOutcome> {
      const network = networkOf(deposit.request.network)
      const { chain, config } = network
      const head = await chain.head(signal)
      for (const attempt of attemptsOf(deposit.transaction).toReversed()) {
        const receipt = await chain.receipt(attempt.hash as Hex, signal)
        if (receipt === undefined) continue
        if (receipt.blockNumber > head.final) {
          throw wait(
            'AwaitingFinality',
            `Transaction ${attempt.hash} is in block ${receipt.blockNumber}; waiting until that block is final.`,
            config.pollIntervalMs,
          )
        }
        return outcomeOf(deposit, network, receipt, signal)
      }
      if (await nonceIsLost(deposit, network, signal)) {
        // Nothing is made in its place: the resource is not to be held for it.
        if (visit.get(WATCH_ONLY) === true)
          await ledger.strike(deposit.request.signer, config.name, deposit.request.origin.uid, STEP, deposit.transaction.nonce)
        return { is: 'superseded' }
      }
      if (await nonceIsUsed(deposit, network, signal)) {
        // By none that status knows, and yet there is a deposit for this validator: ours in a version that status has lost, or somebody else's.
        const { outcome } = await foundOnChain(deposit, network, signal)
        if (outcome !== undefined) return outcome
      }
      if (visit.get(WATCH_ONLY) !== true) {
        try {
          const outcome = await nurse(deposit, network, signal)
          if (outcome !== undefined) return outcome
          const waited = clock.now().getTime() - Date.parse(deposit.transaction.preparedAt)
          if (waited > network.bumpAfterMs) {
            const latest = await chain.transactionCount(deposit.transaction.from as Address, 'latest', signal)
            // A higher fee would not help: an earlier nonce is what it waits for.
            if (latest < deposit.transaction.nonce)
              throw wait(
                'WaitingForNonce',
                `Transaction ${deposit.transaction.hash} (nonce ${deposit.transaction.nonce}) was sent and waits for nonce ${latest} of the same signer. The ledger in StakingSigner ${deposit.request.signer} says whose that is; if it was given up, the next stake of this signer uses it.`,
                config.pollIntervalMs,
              )
            if (isTooCheap(deposit, await chain.head(signal))) return { is: 'replaced', attempt: await bump(deposit, network, signal) }
          }
        } catch (error) {
          // What keeps it from being sent again doesn't keep it from landing: the watch goes on as often as before.
          if (error instanceof Halt && error.verdict.kind === 'stall')
            throw new Halt({ ...error.verdict, recheck: true, recheckAfterMs: config.pollIntervalMs })
          throw error
        }
      }
      throw wait(
        'AwaitingFinality',
        `Transaction ${deposit.transaction.hash} was sent; waiting until it is mined and its block is final.`,
        config.pollIntervalMs,
      )
    },
  }

  async function outcomeOf(
    deposit: InFlightDeposit,
    network: EthereumNetwork,
    receipt: ChainReceipt,
    signal: AbortSignal,
  ): Promise<ConfirmOutcome> {
    const mined = { minedHash: receipt.hash, blockNumber: Number(receipt.blockNumber), blockHash: receipt.blockHash }
    if (!receipt.success) {
      // "No stake was made" is said of the deposit itself only, not of whatever transaction somebody wrote into status.
      const transaction = await network.chain.transaction(receipt.hash, signal)
      if (transaction === undefined)
        throw wait(
          'AwaitingFinality',
          `Transaction ${receipt.hash} was reverted; it is looked at once more.`,
          network.config.pollIntervalMs,
        )
      if (!equalHex(transaction.data, calldataOf(deposit)) || transaction.nonce !== deposit.transaction.nonce)
        throw forged('transaction.hash')
      return { is: 'reverted', ...mined }
    }
    const fields = fieldsOf(deposit)
    const paid = receipt.logs
      .filter((log) => sameAddress(log.address, network.config.depositContractAddress) && log.topics[0] === depositEventTopic)
      .map(decodeDepositLog)
      .some(
        (log) =>
          equalHex(log.pubkey, fields.pubkey) &&
          log.amountGwei === fields.amountGwei &&
          equalHex(log.withdrawalCredentials, fields.withdrawalCredentials) &&
          equalHex(log.signature, fields.signature),
      )
    if (!paid)
      throw stall(
        'DepositMissing',
        `Transaction ${receipt.hash} is final in block ${receipt.blockNumber}, but it did not make this deposit. Look at it on a block explorer.`,
      )
    return { is: 'confirmed', ...mined }
  }

  /** The nonce was used at finality, and by none of ours. The count is read first and the hashes after it, from a node that has come as far. */
  async function nonceIsLost(deposit: InFlightDeposit, network: EthereumNetwork, signal: AbortSignal): Promise<boolean> {
    const { chain } = network
    const before = await chain.head(signal)
    if (!(await nonceIsUsed(deposit, network, signal))) return false
    for (const attempt of attemptsOf(deposit.transaction))
      if ((await chain.receipt(attempt.hash as Hex, signal)) !== undefined) return false
    if ((await chain.depositsFor(deposit.depositData.pubkey as Hex, signal)).length > 0) return false
    const after = await chain.head(signal)
    return after.final >= before.final
  }

  async function nonceIsUsed({ transaction }: InFlightDeposit, { chain }: EthereumNetwork, signal: AbortSignal): Promise<boolean> {
    return (await chain.transactionCount(transaction.from as Address, 'final', signal)) > transaction.nonce
  }

  /** Sends the same bytes again when the node has forgotten them: only after another look whether the deposit was made. */
  async function nurse(deposit: InFlightDeposit, network: EthereumNetwork, signal: AbortSignal): Promise<ConfirmOutcome | undefined> {
    if ((await network.chain.transaction(deposit.transaction.hash as Hex, signal)) !== undefined) return undefined
    const { landed, outcome } = await foundOnChain(deposit, network, signal)
    if (landed !== undefined) return outcome
    const signed = await signedAgain(deposit, network, signal)
    if (signed.is === 'behind') return { is: 'replaced', attempt: signed.attempt }
    deps.assertMayAct()
    try {
      await network.chain.broadcast(signed.raw, signal)
    } catch (error) {
      if (
        !(error instanceof ChainError) ||
        !['already-known', 'nonce-too-low', 'replacement-underpriced', 'underpriced'].includes(error.code)
      )
        throw error
    }
    return undefined
  }

  function isTooCheap({ transaction }: InFlightDeposit, head: ChainHead): boolean {
    return BigInt(transaction.maxFeePerGasWei) < head.baseFeePerGas + BigInt(transaction.maxPriorityFeePerGasWei)
  }
}

const equalHex = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()
const max = (a: Wei, b: Wei): Wei => (a > b ? a : b)
/** Fees that replace those of another transaction under its nonce, at the market's price or above; undefined where the cap is in the way. */
function over(previous: Fees, price: Fees, cap: Wei): Fees | undefined {
  const floor = bumpFees({ previous, market: { baseFeePerGas: wei(0n), priorityFeePerGas: price.maxPriorityFeePerGas }, cap })
  if (floor.kind !== 'fees') return undefined
  return {
    maxFeePerGas: max(price.maxFeePerGas, floor.maxFeePerGas),
    maxPriorityFeePerGas: max(price.maxPriorityFeePerGas, floor.maxPriorityFeePerGas),
  }
}
const feesOf = (entry: InFlight): Fees => ({
  maxFeePerGas: wei(BigInt(entry.maxFeePerGasWei)),
  maxPriorityFeePerGas: wei(BigInt(entry.maxPriorityFeePerGasWei)),
})
