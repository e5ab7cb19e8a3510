import { VersionedTransaction } from '@solana/web3.js'
import { isAddress, isSignature } from '../../../src/chains/solana/addresses.ts'
import { encodeBase58 } from '../../../src/chains/solana/base58.ts'
import type { Commitment } from '../../../src/chains/solana/chain.ts'
import { splitTransaction } from '../../../src/chains/solana/message.ts'
import { type Block, type Fate, type LandedTransaction, type Ledger, maxBlockhashAge } from './ledger.ts'
import { accountJson, matchesFilters } from './rpc-accounts.ts'
import { invalidParams, optionsOf, RpcFault } from './rpc-json.ts'
import { decodeTransaction, feeOf, messageJson, requireSignatures, withBlockhash } from './rpc-transactions.ts'
import type { Account, Execution } from './svm.ts'
import type { Validator } from './vote-accounts.ts'

/** What one node knows and how it behaves; its faults change it. */
export interface NodeState {
  genesisHash: string
  /** Blocks that it is behind the cluster. */
  behind: number
  /** Slots behind that it admits to, as an unhealthy node. */
  unhealthyBy: number | undefined
  /** Signatures in blocks below this height are forgotten. */
  historyFrom: number
  /** Whether `getFirstAvailableBlock` tells of the loss. */
  admitsLoss: boolean
}

export interface NodeContext {
  readonly ledger: Ledger
  readonly state: NodeState
  readonly validators: readonly Validator[]
  /** Lamports that `getStakeMinimumDelegation` tells. */
  readonly minimumDelegation: () => bigint
  /** Micro-lamports a unit that `getRecentPrioritizationFees` tells. */
  readonly recentPriorityFee: () => bigint
  /** What becomes of a transaction that this node takes. */
  readonly fateOf: (signature: string) => Fate
  readonly airdrop: (address: string, lamports: bigint) => string
}

/** Statuses of the last so many blocks are found without `searchTransactionHistory`. */
const recentStatusBlocks = 150

type Method = (params: readonly unknown[]) => unknown

/** Agave's RPC methods, as far as web3.js and this project use them; shapes by the public RPC documentation and web3.js's own types. */
export function createMethods(context: NodeContext): Readonly<Record<string, Method>> {
  const { ledger, state } = context
  const { slotsPerEpoch } = ledger

  const blockFor = (options: unknown): Block => {
    const { commitment = 'finalized', minContextSlot } = optionsOf(options)
    const block = ledger.at(commitmentOf(commitment), state.behind)
    if (typeof minContextSlot === 'number' && block.slot < BigInt(minContextSlot))
      throw new RpcFault(-32016, 'Minimum context slot has not been reached', { contextSlot: block.slot })
    return block
  }
  const withContext = (block: Block, value: unknown) => ({ context: { apiVersion, slot: block.slot }, value })
  const landedFor = (signature: string, block: Block) => {
    const found = ledger.landed(signature)
    return found === undefined || found.block.height > block.height || found.block.height < state.historyFrom ? undefined : found
  }
  const levelOf = (block: Block): Commitment =>
    block.height <= ledger.at('finalized', state.behind).height
      ? 'finalized'
      : block.height <= ledger.at('confirmed', state.behind).height
        ? 'confirmed'
        : 'processed'
  const requireHealth = (): void => {
    if (state.unhealthyBy !== undefined)
      throw new RpcFault(-32005, `Node is behind by ${state.unhealthyBy} slots`, { numSlotsBehind: state.unhealthyBy })
  }
  const accountOf = (address: string, block: Block): Account | undefined => ledger.account(address, block.height)

  const statusOf = (signature: string, search: boolean) => {
    const processed = ledger.at('processed', state.behind)
    const found = landedFor(signature, processed)
    if (found === undefined || (!search && processed.height - found.block.height > recentStatusBlocks)) return null
    const { transaction, block } = found
    const level = levelOf(block)
    return {
      slot: block.slot,
      confirmations: level === 'finalized' ? null : processed.height - block.height,
      err: transaction.err,
      status: transaction.err === null ? { Ok: null } : { Err: transaction.err },
      confirmationStatus: level,
    }
  }

  /** What a simulation or a preflight says; undefined accounts where none are asked for. */
  const simulate = (bytes: Uint8Array, block: Block): Execution => {
    const { message, signatures } = VersionedTransaction.deserialize(bytes)
    const failed = (err: string): Execution => ({ err, logs: [], unitsConsumed: 0n })
    if (!ledger.blockhashLives(message.recentBlockhash, block.height)) return failed('BlockhashNotFound')
    const [first] = signatures
    if (first?.some((byte) => byte !== 0) === true && landedFor(encodeBase58(first), ledger.at('processed', state.behind)) !== undefined)
      return failed('AlreadyProcessed')
    return ledger.simulate(bytes)
  }

  return {
    getGenesisHash: () => state.genesisHash,
    getVersion: () => ({ 'feature-set': 0, 'solana-core': simulatorVersion }),
    getHealth: () => {
      requireHealth()
      return 'ok'
    },
    getIdentity: () => ({ identity: context.validators[0]?.node ?? '11111111111111111111111111111111' }),
    getSlot: ([options]) => blockFor(options).slot,
    getBlockHeight: ([options]) => blockFor(options).height,
    getFirstAvailableBlock: () => (state.admitsLoss ? (ledger.block(state.historyFrom)?.slot ?? 0n) : 0n),
    getEpochInfo: ([options]) => {
      const block = blockFor(options)
      const slotIndex = block.slot % slotsPerEpoch
      return {
        absoluteSlot: block.slot,
        blockHeight: block.height,
        epoch: block.epoch,
        slotIndex,
        slotsInEpoch: slotsPerEpoch,
        transactionCount: 0,
      }
    },
    getEpochSchedule: () => ({
      slotsPerEpoch,
      leaderScheduleSlotOffset: slotsPerEpoch,
      warmup: false,
      firstNormalEpoch: 0,
      firstNormalSlot: 0,
    }),
    getBlockTime: ([slot]) => {
      for (let { height } = ledger.head(), block = ledger.block(height); block !== undefined; height -= 1, block = ledger.block(height))
        if (block.slot === BigInt(slot as number)) return block.time
      throw new RpcFault(-32007, `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`)
    },
    getLatestBlockhash: ([options]) => {
      const block = blockFor(options)
      return withContext(block, { blockhash: block.blockhash, lastValidBlockHeight: block.height + maxBlockhashAge })
    },
    isBlockhashValid: ([blockhash, options]) => {
      const block = blockFor(options)
      return withContext(block, ledger.blockhashLives(String(blockhash), block.height))
    },
    getAccountInfo: ([address, options]) => {
      const block = blockFor(options)
      const key = addressOf(address)
      return withContext(
        block,
        encoded(() => accountJson(key, accountOf(key, block), optionsOf(options))),
      )
    },
    getMultipleAccounts: ([addresses, options]) => {
      if (!Array.isArray(addresses)) throw invalidParams('Invalid params: invalid type: expected a sequence.')
      if (addresses.length > 100) throw invalidParams('Too many inputs provided; max 100')
      const block = blockFor(options)
      const keys = addresses.map(addressOf)
      const all = { encoding: 'base64', ...optionsOf(options) }
      return withContext(
        block,
        keys.map((key) => accountJson(key, accountOf(key, block), all)),
      )
    },
    getProgramAccounts: ([program, options]) => {
      const block = blockFor(options)
      const settings = optionsOf(options)
      const accounts = ledger
        .programAccounts(addressOf(program), block.height)
        .filter(([, account]) => matchesFilters(account, settings.filters))
        .map(([pubkey, account]) => ({ pubkey, account: encoded(() => accountJson(pubkey, account, settings)) }))
      return settings.withContext === true ? withContext(block, accounts) : accounts
    },
    getBalance: ([address, options]) => {
      const block = blockFor(options)
      return withContext(block, accountOf(addressOf(address), block)?.lamports ?? 0n)
    },
    getMinimumBalanceForRentExemption: ([bytes]) => ledger.rentExemption(Number(bytes)),
    getStakeMinimumDelegation: ([options]) => withContext(blockFor(options), context.minimumDelegation()),
    getVoteAccounts: ([options]) => {
      const { votePubkey } = optionsOf(options)
      const block = blockFor(options)
      const listed = context.validators.filter(({ voteAccount }) => votePubkey === undefined || voteAccount === votePubkey)
      const show = ({ voteAccount, node, commission, delinquent, activatedStake }: Validator) => ({
        votePubkey: voteAccount,
        nodePubkey: node,
        activatedStake,
        epochVoteAccount: true,
        commission,
        lastVote: delinquent ? block.slot - 1000n : block.slot,
        epochCredits: [],
        rootSlot: ledger.at('finalized', state.behind).slot,
      })
      return {
        current: listed.filter(({ delinquent }) => !delinquent).map(show),
        delinquent: listed.filter(({ delinquent }) => delinquent).map(show),
      }
    },
    getFeeForMessage: ([text, options]) => {
      const block = blockFor(options)
      const message = new Uint8Array(Buffer.from(String(text), 'base64'))
      const { recentBlockhash } = VersionedTransaction.deserialize(emptySigned(message)).message
      return withContext(block, ledger.blockhashLives(recentBlockhash, block.height) ? feeOf(message) : null)
    },
    getRecentPrioritizationFees: () => {
      const head = ledger.at('processed', state.behind)
      return Array.from({ length: Math.min(150, head.height) }, (_, index) => ({
        slot: head.slot - BigInt(index),
        prioritizationFee: context.recentPriorityFee(),
      }))
    },
    getSignatureStatuses: ([signatures, options]) => {
      if (!Array.isArray(signatures)) throw invalidParams('Invalid params: invalid type: expected a sequence.')
      if (signatures.length > 256) throw invalidParams('Too many inputs provided; max 256')
      if (!signatures.every((signature) => typeof signature === 'string' && isSignature(signature)))
        throw invalidParams('Invalid param: Invalid')
      const search = optionsOf(options).searchTransactionHistory === true
      return withContext(
        ledger.at('processed', state.behind),
        (signatures as readonly string[]).map((signature) => statusOf(signature, search)),
      )
    },
    getSignaturesForAddress: ([address, options]) => {
      const key = addressOf(address)
      const block = blockFor(options)
      const all: object[] = []
      for (
        let { height } = block, at = ledger.block(height);
        at !== undefined && height >= state.historyFrom;
        height -= 1, at = ledger.block(height)
      ) {
        for (const { signature, accounts, err, slot } of at.transactions.toReversed())
          if (accounts.includes(key)) all.push({ signature, slot, err, memo: null, blockTime: at.time, confirmationStatus: levelOf(at) })
      }
      return all.slice(0, Number(optionsOf(options).limit ?? 1000))
    },
    getTransaction: ([signature, options]) => {
      const settings = typeof options === 'string' ? { encoding: options } : optionsOf(options)
      if (settings.encoding === 'jsonParsed') throw invalidParams('the simulator has no jsonParsed transactions')
      if (typeof signature !== 'string' || !isSignature(signature)) throw invalidParams('Invalid param: Invalid')
      const found = landedFor(signature, blockFor(settings))
      return found === undefined ? null : transactionJson(found.transaction, found.block, settings)
    },
    requestAirdrop: ([address, lamports]) => context.airdrop(addressOf(address), BigInt(lamports as number)),
    simulateTransaction: ([text, options]) => {
      const settings = optionsOf(options)
      let bytes = decodeTransaction(text, settings.encoding)
      const block = blockFor(settings)
      const replace = settings.replaceRecentBlockhash === true
      if (replace && settings.sigVerify === true) throw invalidParams('sigVerify may not be used with replaceRecentBlockhash')
      if (settings.sigVerify === true) requireSignatures(bytes)
      if (replace) bytes = withBlockhash(bytes, block.blockhash)
      const { err, logs, unitsConsumed, accounts } = simulate(bytes, block)
      const watched = optionsOf(settings.accounts)
      const addresses = Array.isArray(watched.addresses) ? watched.addresses.map(addressOf) : undefined
      const after = (address: string) => (err === null ? (accounts?.get(address) ?? accountOf(address, block)) : undefined)
      return withContext(block, {
        err,
        logs,
        accounts:
          addresses?.map((address) => {
            const account = after(address)
            return accountJson(address, account?.lamports === 0n ? undefined : account, { encoding: watched.encoding ?? 'base64' })
          }) ?? null,
        unitsConsumed,
        returnData: null,
        innerInstructions: null,
        ...(replace ? { replacementBlockhash: { blockhash: block.blockhash, lastValidBlockHeight: block.height + maxBlockhashAge } } : {}),
      })
    },
    sendTransaction: ([text, options]) => {
      const settings = optionsOf(options)
      const bytes = decodeTransaction(text, settings.encoding)
      if (settings.skipPreflight !== true) {
        requireSignatures(bytes)
        requireHealth()
        const block = ledger.at(commitmentOf(settings.preflightCommitment ?? 'finalized'), state.behind)
        const { err, logs, unitsConsumed } = simulate(bytes, block)
        if (err !== null)
          throw new RpcFault(-32002, `Transaction simulation failed: ${explain(err)}`, {
            accounts: null,
            err,
            innerInstructions: null,
            logs,
            returnData: null,
            unitsConsumed,
          })
      }
      const signature = encodeBase58(splitTransaction(bytes).signatures[0] ?? new Uint8Array(64))
      // The leader drops, without a word, what isn't signed.
      const fate = isSigned(bytes) ? context.fateOf(signature) : ({ kind: 'drop' } as const)
      return ledger.submit(bytes, fate)
    },
  }
}

/** It says what it is. */
const simulatorVersion = '0.0.0-simulator-around-litesvm'
const apiVersion = simulatorVersion

function isSigned(bytes: Uint8Array): boolean {
  try {
    requireSignatures(bytes)
    return true
  } catch {
    return false
  }
}

function commitmentOf(value: unknown): Commitment {
  if (value === 'processed' || value === 'confirmed' || value === 'finalized') return value
  throw invalidParams(`Invalid params: unknown variant \`${String(value)}\`, expected one of \`processed\`, \`confirmed\`, \`finalized\`.`)
}

function addressOf(value: unknown): string {
  if (typeof value !== 'string' || !isAddress(value)) throw invalidParams('Invalid param: Invalid')
  return value
}

function encoded<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (error instanceof RpcFault) throw error
    throw new RpcFault(-32600, error instanceof Error ? error.message : 'Invalid request')
  }
}

/** A message as a transaction without signatures. */
function emptySigned(message: Uint8Array): Uint8Array {
  const versioned = ((message[0] ?? 0) & 0x80) !== 0
  const count = message[versioned ? 1 : 0] ?? 0
  return new Uint8Array(Buffer.concat([Uint8Array.of(count), new Uint8Array(64 * count), message]))
}

/** In Agave's words, as far as they are needed: clients find the reason in `data.err`. */
const explain = (err: unknown): string => {
  if (err === 'BlockhashNotFound') return 'Blockhash not found'
  if (err === 'AlreadyProcessed') return 'This transaction has already been processed'
  if (err === 'AccountNotFound') return 'Attempt to debit an account but found no record of a prior credit.'
  if (typeof err === 'string') return err
  const [index, reason] = (optionsOf(err).InstructionError ?? []) as readonly unknown[]
  const custom = optionsOf(reason).Custom
  if (typeof custom === 'number') return `Error processing Instruction ${String(index)}: custom program error: 0x${custom.toString(16)}`
  return `Error processing Instruction ${String(index)}: ${String(reason)}`
}

function transactionJson(transaction: LandedTransaction, block: Block, { encoding = 'json' }: Readonly<Record<string, unknown>>): object {
  const { bytes, err, fee, preBalances, postBalances, logs, unitsConsumed } = transaction
  const { message } = VersionedTransaction.deserialize(bytes)
  const body =
    encoding === 'base64'
      ? [Buffer.from(bytes).toString('base64'), 'base64']
      : encoding === 'base58'
        ? [encodeBase58(bytes), 'base58']
        : messageJson(bytes)
  return {
    slot: block.slot,
    blockTime: block.time,
    version: message.version,
    transaction: body,
    meta: {
      err,
      status: err === null ? { Ok: null } : { Err: err },
      fee,
      preBalances,
      postBalances,
      preTokenBalances: [],
      postTokenBalances: [],
      innerInstructions: [],
      logMessages: logs,
      loadedAddresses: { readonly: [], writable: [] },
      rewards: [],
      computeUnitsConsumed: unitsConsumed,
    },
  }
}
