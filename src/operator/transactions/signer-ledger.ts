import type { Address, ChainReceipt, EthereumChain, Hex } from '../../chains/ethereum/chain.ts'
import { formatWeiAsEth, type Wei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { InFlight, Ledger, StakingSigner, StakingSignerStatus } from '../../resources/staking-signer.ts'
import type { Origin } from '../engine/origin.ts'
import { conflict, Halt, retry, stall, wait } from '../engine/verdict.ts'
import {
  boundWei,
  emptyLedger,
  entryOf,
  hashesOf,
  isDeposit,
  isOwner,
  MAX_IN_FLIGHT,
  type NonceCounts,
  type NonceOffer,
  type Owner,
  offers,
  originOf,
  payersOf,
  pruned,
  type ReservationRequest,
  unaccounted,
  unsettled,
  withEntry,
  withoutEntry,
} from './ledger.ts'

/** Signers as the ledger needs them. `writeStatus` is fenced by the given object's resourceVersion and throws the `conflict` verdict on 409. */
export interface SignerStore {
  get(name: string): StakingSigner | undefined
  list(): Iterable<StakingSigner>
  read(name: string, signal: AbortSignal): Promise<StakingSigner | undefined>
  writeStatus(signer: StakingSigner, status: StakingSignerStatus, signal: AbortSignal): Promise<StakingSigner>
}

/** One signed version of a transaction, as the ledger records it. */
export interface LedgerVersion {
  readonly gas: bigint
  readonly maxFeePerGas: Wei
  readonly maxPriorityFeePerGas: Wei
  readonly hash: Hex
  /** Where it is not the one that was asked for, or not the one before. */
  readonly valueWei?: Wei
}

export interface Reservation {
  readonly signer: string
  readonly network: string
  readonly chain: EthereumChain
  readonly request: ReservationRequest
  readonly valueWei: Wei
  /** Highest cost in wei with fees, for the check of the balance. */
  readonly costWei: Wei
  /** Signs the transaction under the offered nonce; it must pay 10 % more than what it displaces. */
  readonly build: (offer: NonceOffer) => Promise<LedgerVersion>
}

export interface SignerLedger {
  /**
   * Gives out a nonce, recorded (fenced) in the signer's status before this resolves. The same origin and step always get the nonce that
   * they were given first. Requests that arrive together are written together. A validator has at most one nonce over all signers that may
   * still pay for it, and at most one that asks something of it, until the outcome of that is known.
   */
  reserve(reservation: Reservation): Promise<InFlight>
  /** Records a dearer version of a transaction under its nonce. */
  replace(signer: string, network: string, origin: Origin, step: string, version: LedgerVersion): Promise<InFlight>
  /** What the ledger holds for a resource's step, and makes sure that nobody is given its nonce meanwhile. */
  claim(signer: string, network: string, origin: Origin, step: string): Promise<InFlight | undefined>
  /** Strikes off a transaction that can never land, where nothing will be made in its place: its nonce was used by another at finality. */
  strike(signer: string, network: string, origin: Origin, step: string, nonce: number): Promise<void>
  /** What the ledger holds for a resource's step. */
  find(signer: string, network: string, origin: Origin, step: string): InFlight | undefined
  /** Whether the ledger has a transaction for a resource's step. */
  has(signer: string, network: string, origin: Origin, step: string): boolean
  /** Who holds a nonce. */
  holder(signer: string, network: string, nonce: number): InFlight | undefined
  /** The resource will not send its transaction: the next one may use its nonce. */
  release(signer: string, network: string, origin: Origin, step: string): void
}

const ATTEMPTS = 5

export function createSignerLedger(deps: {
  readonly signers: SignerStore
  readonly clock: Clock
  /** Whether the resource of an entry still exists. */
  readonly exists: (entry: InFlight) => boolean
  /** Whether the resource of a request's entry knows its outcome for good, and so does the staking API: nothing needs the entry any more. */
  readonly isSettled: (entry: Owner) => boolean
  /** Aborted when the lease is lost: no ledger is written after that. */
  readonly signal: AbortSignal
  readonly onWrite?: (signer: string, reservations: number) => void
}): SignerLedger {
  type Waiting = { reservation: Reservation; resolve: (entry: InFlight) => void; reject: (error: unknown) => void }
  const { signal } = deps
  const waiting = new Map<string, Waiting[]>()
  const locks = new Map<string, Promise<void>>()
  const released = new Set<string>()
  /** Who is about to pay for a validator, from before the ledger is written until it is. */
  const paying = new Map<string, string>()
  const keyOf = (signer: string, network: string, origin: Origin, step: string) =>
    [signer, network, origin.uid, origin.kind, origin.namespace, origin.name, step].join('/')

  /** One at a time for each signer. */
  function locked<T>(signer: string, work: () => Promise<T>): Promise<T> {
    const before = locks.get(signer) ?? Promise.resolve()
    const result = before.then(work)
    const settled = result.then(
      () => undefined,
      () => undefined,
    )
    locks.set(signer, settled)
    void settled.then(() => {
      if (locks.get(signer) === settled) locks.delete(signer)
    })
    return result
  }

  const ledgerOf = (signer: StakingSigner | undefined, network: string): Ledger | undefined =>
    signer?.status?.ledgers?.find((ledger) => ledger.network === network)

  /** Runs `change` on the signer as it is now and writes the ledger that comes out, again from the start when somebody else wrote meanwhile. */
  async function update<T>(
    name: string,
    change: (signer: StakingSigner, asCached: boolean) => Promise<{ ledgers: readonly Ledger[]; value: T } | { value: T }>,
  ): Promise<T> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      signal.throwIfAborted()
      const signer = attempt === 0 ? deps.signers.get(name) : await deps.signers.read(name, signal)
      if (signer === undefined) throw stall('SignerNotFound', `There is no StakingSigner ${name}.`)
      try {
        const outcome = await change(signer, attempt === 0)
        if (!('ledgers' in outcome)) return outcome.value
        const others = (signer.status?.ledgers ?? []).filter(
          (existing) => !outcome.ledgers.some((ledger) => ledger.network === existing.network),
        )
        signal.throwIfAborted()
        await deps.signers.writeStatus(
          signer,
          { ...signer.status, ledgers: [...others, ...outcome.ledgers].sort((a, b) => a.network.localeCompare(b.network)) },
          signal,
        )
        return outcome.value
      } catch (error) {
        if (!isConflict(error)) throw error
      }
    }
    throw retry('WaitingForNonce', `The ledger of StakingSigner ${name} is being written by others; it is tried again.`)
  }

  async function plan(signer: StakingSigner, asCached: boolean, network: string, batch: readonly Waiting[]) {
    const chain = (batch[0] as Waiting).reservation.chain
    const address = signer.spec.address as Address
    const [latest, pending, final, balance] = await Promise.all([
      chain.transactionCount(address, 'latest', signal),
      chain.transactionCount(address, 'pending', signal),
      chain.transactionCount(address, 'final', signal),
      chain.balance(address, signal),
    ])
    const counts: NonceCounts = { latest, pending, final }
    const recorded = ledgerOf(signer, network) ?? emptyLedger(network)
    if (signer.spec.policy.sharedKey !== true) {
      const first = unaccounted(recorded, counts, signer.spec.acknowledgedNonce)
      if (first !== undefined) {
        // The cache may lag behind the ledger (a new leader's does): nobody is alarmed before it was read afresh.
        if (asCached) throw conflict()
        throw stall(
          'UnaccountedTransactions',
          `The chain shows ${Math.max(latest, pending)} transactions of ${address} on ${network}, but the ledger of StakingSigner ${signer.metadata.name} knows of those below nonce ${first} only. Look at them: one may be a deposit that these manifests made before. Then set spec.acknowledgedNonce: ${Math.max(latest, pending)} (or policy.sharedKey: true where the key is used elsewhere on purpose).`,
        )
      }
      const open = unsettled(recorded, counts, signer.spec.acknowledgedNonce)
      if (open !== undefined)
        throw wait(
          'WaitingForNonce',
          `Of the transactions of ${address} on ${network} that spec.acknowledgedNonce of StakingSigner ${signer.metadata.name} covers, those from nonce ${open} on are not final yet, and one may be a deposit that these manifests made before. It goes on when they are.`,
          5_000,
        )
    }
    let ledger = pruned(recorded, counts, (entry) => !deps.isSettled(entry))
    const granted: { waiting: Waiting; entry: InFlight }[] = []
    const fresh: Waiting[] = []
    for (const request of batch) {
      try {
        const entry = await ownEntry(recorded, counts, request.reservation)
        if (entry === undefined) fresh.push(request)
        else {
          released.delete(ownerOf(request.reservation))
          granted.push({ waiting: request, entry })
        }
      } catch (error) {
        request.reject(error)
      }
    }

    const isReleased = (entry: InFlight) =>
      released.has(keyOf(signer.metadata.name, network, originOf(entry), entry.step)) || !deps.exists(entry)
    // After the own entries were claimed: none of them may be offered to another.
    const next = offers(ledger, counts, isReleased)
    const taken = new Set<number>()
    let offer: NonceOffer | undefined
    let free = balance - boundWei(ledger, counts)
    let changed = false
    for (const request of fresh) {
      const { reservation } = request
      const { pubkey, ...who } = reservation.request
      const owner = ownerOf(reservation)
      try {
        if (!isDeposit(reservation.request)) await assertInOrder(ledger, counts, reservation, isReleased)
        const heir = isDeposit(reservation.request) ? await heirOf(signer, ledger, counts, reservation) : undefined
        let entry: InFlight
        if (heir !== undefined) {
          // Nobody holds it any more, and it may have been sent: the same bytes under the same nonce are this resource's now.
          entry = { ...heir, ...who }
        } else {
          while (offer === undefined || taken.has(offer.nonce)) offer = next.next().value
          if (offer.displaces === undefined && (ledger.inFlight ?? []).length >= MAX_IN_FLIGHT) {
            throw wait(
              'WaitingForNonce',
              `StakingSigner ${signer.metadata.name} has ${MAX_IN_FLIGHT} transactions in flight on ${network}; this one comes after them.`,
              5_000,
            )
          }
          if (free < reservation.costWei) {
            throw wait(
              'InsufficientFunds',
              `${address} holds ${formatWeiAsEth(balance)} ETH on ${network}, and with what is in flight that does not cover ${formatWeiAsEth(reservation.valueWei)} ETH and the highest possible fee. Fund the address; it goes on by itself.`,
              30_000,
            )
          }
          const version = await reservation.build(offer)
          free -= reservation.costWei
          entry = {
            ...who,
            pubkey,
            nonce: offer.nonce,
            valueWei: (version.valueWei ?? reservation.valueWei).toString(),
            gas: version.gas.toString(),
            maxFeePerGasWei: version.maxFeePerGas.toString(),
            maxPriorityFeePerGasWei: version.maxPriorityFeePerGas.toString(),
            hash: version.hash,
            recordedAt: timestamp(deps.clock.now()),
          }
        }
        // What it had before was used at finality by another transaction.
        ledger = withEntry(withoutEntry(ledger, originOf(who), who.step), entry)
        taken.add(entry.nonce)
        released.delete(owner)
        granted.push({ waiting: request, entry })
        changed = true
      } catch (error) {
        // This one's trouble; the nonce that it was offered goes to the next.
        giveUp(reservation)
        request.reject(error)
      }
    }
    return { granted, ledger: changed ? { ...ledger, balanceWei: balance.toString() } : undefined }
  }

  const ownerOf = ({ signer, network, request }: Reservation) => keyOf(signer, network, originOf(request), request.step)
  const payKey = ({ network, request }: Reservation) => `${network}/${request.pubkey.toLowerCase()}`
  const giveUp = (reservation: Reservation) => {
    if (paying.get(payKey(reservation)) === ownerOf(reservation)) paying.delete(payKey(reservation))
  }

  /** What the ledger holds for this very resource and step, as recorded: an entry whose nonce was used at finality may be the very deposit that is asked for. */
  async function ownEntry(recorded: Ledger, counts: NonceCounts, { chain, request }: Reservation): Promise<InFlight | undefined> {
    const entry = entryOf(recorded, originOf(request), request.step)
    if (entry === undefined) return undefined
    if (entry.nonce < counts.final) {
      // Used at finality. Whether by itself or by another transaction, the receipts say, asked after the counts.
      const landed = await receiptOf(chain, hashesOf(entry))
      if (landed === undefined) return undefined
      // Reverted: the resource is to see that. Otherwise it made a deposit, and who asks for a nonce has not seen it yet. A request is seen by
      // nothing but this.
      if (landed.success && isDeposit(request))
        throw wait('HistorySyncing', "This resource's transaction is in the chain already; its deposit is about to be seen.", 2_000)
    }
    if (entry.pubkey !== undefined && entry.pubkey.toLowerCase() !== request.pubkey.toLowerCase())
      throw stall(
        isDeposit(request) ? 'AdoptionMismatch' : 'VerificationFailed',
        `The signer's ledger has a transaction of this resource (nonce ${entry.nonce}) for another validator. It may still land, so that nothing is signed for this one.`,
      )
    return entry
  }

  /**
   * Makes sure that nothing else may pay for this validator, on any signer of the network.
   * @returns the entry of a resource that is gone, for the very same deposit: to be taken over as it is.
   */
  async function heirOf(
    signer: StakingSigner,
    ledger: Ledger,
    counts: NonceCounts,
    reservation: Reservation,
  ): Promise<InFlight | undefined> {
    const { chain, network, request, valueWei } = reservation
    const isPayer = (entry: InFlight) => isDeposit(entry) && entry.pubkey?.toLowerCase() === request.pubkey.toLowerCase()
    const owner = paying.get(payKey(reservation))
    if (owner !== undefined && owner !== ownerOf(reservation)) throw paidByOther(undefined)
    // Before anything is awaited: two signers that plan at the same time see each other here.
    paying.set(payKey(reservation), ownerOf(reservation))
    for (const other of deps.signers.list()) {
      if (other.metadata.name === signer.metadata.name) continue
      const payers = payersOf(ledgerOf(other, network), request.pubkey)
      if (payers.length === 0) continue
      const final = await chain.transactionCount(other.spec.address as Address, 'final', signal)
      for (const payer of payers)
        if (payer.nonce >= final || (isPayer(payer) && (await receiptOf(chain, hashesOf(payer))) !== undefined)) throw paidByOther(payer)
    }
    // Under a nonce that is final nothing can land any more, and what has landed is seen on the chain.
    const payer = payersOf(ledger, request.pubkey).find(({ nonce }) => nonce >= counts.final)
    if (payer === undefined) return undefined
    if (isPayer(payer) && payer.step === request.step && !deps.exists(payer) && payer.valueWei === valueWei.toString()) return payer
    throw paidByOther(payer)
  }

  /**
   * Requests on one validator follow one another: none is sent while the outcome of another is unknown. And none is made twice by resources of one
   * name: no contract tells whether one was made before.
   */
  async function assertInOrder(
    ledger: Ledger,
    counts: NonceCounts,
    { chain, request }: Reservation,
    isReleased: (entry: InFlight) => boolean,
  ): Promise<void> {
    const isOfItsName = (other: Owner) =>
      other.kind === request.kind && other.namespace === request.namespace && other.name === request.name
    for (const { nonce, hashes, ...given } of ledger.displacedRequests ?? []) {
      const isOwn = isOwner(given, originOf(request))
      if (!isOwn && !(isOfItsName(given) && given.pubkey?.toLowerCase() === request.pubkey.toLowerCase())) continue
      const whose = isOwn ? "this request's" : 'that of an earlier resource of this name, for the same validator,'
      if (nonce >= counts.final)
        throw wait(
          'WaitingForNonce',
          `Nonce ${nonce} was ${whose} before, and was given to another transaction. It may land under it yet: once that nonce is final, it goes on.`,
          5_000,
        )
      const landed = await receiptOf(chain, hashes)
      if (landed?.success) throw alreadyMade(landed, isOwn)
    }
    for (const other of ledger.inFlight ?? []) {
      if (isDeposit(other) || isOwner(other, originOf(request)) || other.pubkey?.toLowerCase() !== request.pubkey.toLowerCase()) continue
      if (isOfItsName(other)) {
        const landed = await receiptOf(chain, hashesOf(other))
        if (landed?.success) throw alreadyMade(landed, false)
        if (landed === undefined && other.nonce >= counts.final)
          throw wait(
            'WaitingForNonce',
            `A transaction of an earlier resource of this name (nonce ${other.nonce}) may still make this request. Once that nonce is final, it goes on.`,
            5_000,
          )
      } else if (deps.exists(other) && !isReleased(other) && !deps.isSettled(other)) {
        throw wait('WaitingForValidator', waitingFor(other), 5_000)
      }
    }
  }

  const alreadyMade = ({ hash }: ChainReceipt, byItself: boolean) =>
    stall(
      'AlreadyRequested',
      `${byItself ? 'This resource' : 'An earlier resource of this name'} has made this request already, by transaction ${hash}. Nothing was asked again. To ask once more, create a resource with another name.`,
    )

  const waitingFor = ({ kind, namespace, name }: InFlight): string =>
    `${kind} ${namespace}/${name} has a transaction for this validator, and what the consensus layer makes of it is not known yet. This one comes after it.`

  const paidByOther = (payer: InFlight | undefined) =>
    stall(
      'AdoptionMismatch',
      `Another transaction${payer === undefined ? '' : ` (nonce ${payer.nonce})`} may still pay for this validator: one for another resource, or one that was given up after it was made. Nothing is signed before that is settled.`,
    )

  async function receiptOf(chain: EthereumChain, hashes: readonly string[]): Promise<ChainReceipt | undefined> {
    for (const hash of hashes) {
      const receipt = await chain.receipt(hash as Hex, signal)
      if (receipt !== undefined) return receipt
    }
    return undefined
  }

  async function drain(name: string): Promise<void> {
    const batch = waiting.get(name) ?? []
    waiting.delete(name)
    if (batch.length === 0) return
    const open = new Set(batch)
    try {
      const granted = await update(name, async (signer, asCached) => {
        const byNetwork = Map.groupBy(open, (entry) => entry.reservation.network)
        const granted: { waiting: Waiting; entry: InFlight }[] = []
        const ledgers: Ledger[] = []
        for (const [network, requests] of byNetwork) {
          try {
            const result = await plan(signer, asCached, network, requests)
            granted.push(...result.granted)
            if (result.ledger) ledgers.push(result.ledger)
            const still = new Set(result.granted.map((grant) => grant.waiting))
            for (const request of requests) if (!still.has(request)) open.delete(request)
          } catch (error) {
            if (isConflict(error)) throw error
            for (const request of requests) {
              request.reject(error)
              open.delete(request)
            }
          }
        }
        return ledgers.length === 0 ? { value: granted } : { ledgers, value: granted }
      })
      deps.onWrite?.(name, granted.length)
      for (const { waiting: request, entry } of granted) {
        giveUp(request.reservation)
        request.resolve(entry)
      }
    } catch (error) {
      for (const request of open) {
        // A write without an answer may have taken place: nobody else pays for this validator until its own resource has come back and looked.
        if (error instanceof Halt) giveUp(request.reservation)
        request.reject(error)
      }
    }
  }

  return {
    reserve(reservation) {
      return new Promise<InFlight>((resolve, reject) => {
        const queue = waiting.get(reservation.signer)
        if (queue) {
          queue.push({ reservation, resolve, reject })
          return
        }
        waiting.set(reservation.signer, [{ reservation, resolve, reject }])
        // Whoever comes first drains for all that gather while the lock is held.
        void locked(reservation.signer, () => drain(reservation.signer))
      })
    },
    replace(signerName, network, origin, step, version) {
      return locked(signerName, () =>
        update(signerName, async (signer) => {
          const ledger = ledgerOf(signer, network)
          const entry = entryOf(ledger, origin, step)
          if (ledger === undefined || entry === undefined) throw conflict()
          if (entry.hash === version.hash) return { value: entry }
          const next: InFlight = {
            ...entry,
            gas: version.gas.toString(),
            maxFeePerGasWei: version.maxFeePerGas.toString(),
            maxPriorityFeePerGasWei: version.maxPriorityFeePerGas.toString(),
            hash: version.hash,
            ...(version.valueWei === undefined ? {} : { valueWei: version.valueWei.toString() }),
            earlierHashes: hashesOf(entry).slice(-32),
          }
          return { ledgers: [withEntry(ledger, next)], value: next }
        }),
      )
    },
    claim(signerName, network, origin, step) {
      return locked(signerName, async () => {
        signal.throwIfAborted()
        const entry = entryOf(ledgerOf(deps.signers.get(signerName), network), origin, step)
        if (entry !== undefined) released.delete(keyOf(signerName, network, origin, step))
        return entry
      })
    },
    strike(signerName, network, origin, step, nonce) {
      return locked(signerName, () =>
        update(signerName, async (signer) => {
          const ledger = ledgerOf(signer, network)
          const entry = entryOf(ledger, origin, step)
          if (ledger === undefined || entry === undefined || entry.nonce !== nonce) return { value: undefined }
          return { ledgers: [{ ...ledger, inFlight: (ledger.inFlight ?? []).filter((other) => other !== entry) }], value: undefined }
        }),
      )
    },
    find: (signerName, network, origin, step) => entryOf(ledgerOf(deps.signers.get(signerName), network), origin, step),
    has: (signerName, network, origin, step) => entryOf(ledgerOf(deps.signers.get(signerName), network), origin, step) !== undefined,
    holder(signerName, network, nonce) {
      return ledgerOf(deps.signers.get(signerName), network)?.inFlight?.find((entry) => entry.nonce === nonce)
    },
    release(signerName, network, origin, step) {
      released.add(keyOf(signerName, network, origin, step))
    },
  }
}

const isConflict = (error: unknown): boolean =>
  error instanceof Error && 'verdict' in error && (error.verdict as { kind?: string }).kind === 'conflict'
