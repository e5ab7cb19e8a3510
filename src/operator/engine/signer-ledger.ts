import type { Address, EthereumChain, Hex } from '../../chains/ethereum/chain.ts'
import { formatWeiAsEth, type Wei, wei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { InFlight, Ledger, StakingSigner, StakingSignerStatus } from '../../resources/staking-signer.ts'
import {
  boundWei,
  emptyLedger,
  entryOf,
  hashesOf,
  MAX_IN_FLIGHT,
  type NonceCounts,
  type NonceOffer,
  offers,
  pruned,
  type ReservationRequest,
  unaccounted,
  withEntry,
} from '../sagas/ledger.ts'
import { conflict, retry, stall, wait } from '../sagas/verdict.ts'

/** Signers as the ledger needs them. `writeStatus` is fenced by the given object's resourceVersion and throws the `conflict` verdict on 409. */
export interface SignerStore {
  get(name: string): StakingSigner | undefined
  read(name: string, signal: AbortSignal): Promise<StakingSigner | undefined>
  writeStatus(signer: StakingSigner, status: StakingSignerStatus, signal: AbortSignal): Promise<StakingSigner>
}

/** One signed version of a transaction, as the ledger records it. */
export interface LedgerVersion {
  readonly gas: bigint
  readonly maxFeePerGas: Wei
  readonly maxPriorityFeePerGas: Wei
  readonly hash: Hex
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
   * they were given first. Requests that arrive together are written together.
   */
  reserve(reservation: Reservation): Promise<InFlight>
  /** Records a dearer version of a transaction under its nonce. */
  replace(signer: string, network: string, origin: string, step: string, version: LedgerVersion): Promise<InFlight>
  /** What the ledger holds for a resource's step, and makes sure that nobody is given its nonce meanwhile. */
  claim(signer: string, network: string, origin: string, step: string): Promise<InFlight | undefined>
  /** Whether the ledger has a transaction for a resource's step. */
  has(signer: string, network: string, origin: string, step: string): boolean
  /** Who holds a nonce. */
  holder(signer: string, network: string, nonce: number): InFlight | undefined
  /** The resource will not send its transaction: the next one may use its nonce. */
  release(signer: string, network: string, origin: string, step: string): void
}

const ATTEMPTS = 5

export function createSignerLedger(deps: {
  readonly signers: SignerStore
  readonly clock: Clock
  /** Whether the resource of an entry still exists. */
  readonly exists: (entry: InFlight) => boolean
  /** Aborted when the lease is lost: no ledger is written after that. */
  readonly signal: AbortSignal
  readonly onWrite?: (signer: string, reservations: number) => void
}): SignerLedger {
  type Waiting = { reservation: Reservation; resolve: (entry: InFlight) => void; reject: (error: unknown) => void }
  const { signal } = deps
  const waiting = new Map<string, Waiting[]>()
  const locks = new Map<string, Promise<void>>()
  const released = new Set<string>()
  const keyOf = (signer: string, network: string, origin: string, step: string) => `${signer}/${network}/${origin}/${step}`

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
    change: (signer: StakingSigner) => Promise<{ ledgers: readonly Ledger[]; value: T } | { value: T }>,
  ): Promise<T> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      signal.throwIfAborted()
      const signer = attempt === 0 ? deps.signers.get(name) : await deps.signers.read(name, signal)
      if (signer === undefined) throw stall('SignerNotFound', `There is no StakingSigner ${name}.`)
      const outcome = await change(signer)
      if (!('ledgers' in outcome)) return outcome.value
      try {
        const others = (signer.status?.ledgers ?? []).filter(
          (existing) => !outcome.ledgers.some((ledger) => ledger.network === existing.network),
        )
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

  async function plan(signer: StakingSigner, network: string, batch: readonly Waiting[]) {
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
        throw stall(
          'UnaccountedTransactions',
          `The chain shows ${Math.max(latest, pending)} transactions of ${address} on ${network}, but the ledger of StakingSigner ${signer.metadata.name} knows of those below nonce ${first} only. Look at them: one may be a deposit that these manifests made before. Then set spec.acknowledgedNonce: ${Math.max(latest, pending)} (or policy.sharedKey: true where the key is used elsewhere on purpose).`,
        )
      }
    }
    let ledger = pruned(recorded, counts)
    const isReleased = (entry: InFlight) =>
      released.has(keyOf(signer.metadata.name, network, entry.origin, entry.step)) || !deps.exists(entry)
    const next = offers(ledger, counts, isReleased)
    let offer = next.next().value
    let free = balance - boundWei(ledger, counts)
    const granted: { waiting: Waiting; entry: InFlight }[] = []
    let changed = false
    for (const request of batch) {
      const { origin, kind, namespace, name, step, pubkey } = request.reservation.request
      try {
        // From the ledger as recorded: an entry whose nonce was used at finality is pruned, yet it may be the very deposit that is asked for.
        const existing = entryOf(recorded, origin, step)
        if (existing !== undefined && existing.nonce >= final) {
          released.delete(keyOf(signer.metadata.name, network, origin, step))
          granted.push({ waiting: request, entry: existing })
          continue
        }
        // Its nonce is used at finality. Whether by itself or by another transaction, the receipts say, asked after the counts.
        if (existing !== undefined && (await landed(chain, existing))) throw conflict()
        const twin = (ledger.inFlight ?? []).find((entry) => entry.pubkey === pubkey)
        if (twin !== undefined && deps.exists(twin)) {
          throw stall('AdoptionMismatch', `Another resource's transaction (nonce ${twin.nonce}) is paying for this validator already.`)
        }
        if ((ledger.inFlight ?? []).length >= MAX_IN_FLIGHT) {
          throw wait(
            'WaitingForNonce',
            `StakingSigner ${signer.metadata.name} has ${MAX_IN_FLIGHT} transactions in flight on ${network}; this one comes after them.`,
            5_000,
          )
        }
        if (free < request.reservation.costWei) {
          throw wait(
            'InsufficientFunds',
            `${address} has ${formatWeiAsEth(wei(free < 0n ? 0n : free))} ETH free on ${network} (balance ${formatWeiAsEth(balance)} ETH), and this needs ${formatWeiAsEth(request.reservation.costWei)} ETH with the highest possible fee. Fund the address; it goes on by itself.`,
            30_000,
          )
        }
        const version = await request.reservation.build(offer)
        const entry: InFlight = {
          origin,
          kind,
          namespace,
          name,
          step,
          pubkey,
          nonce: offer.nonce,
          valueWei: request.reservation.valueWei.toString(),
          gas: version.gas.toString(),
          maxFeePerGasWei: version.maxFeePerGas.toString(),
          maxPriorityFeePerGasWei: version.maxPriorityFeePerGas.toString(),
          hash: version.hash,
          recordedAt: timestamp(deps.clock.now()),
        }
        ledger = withEntry(ledger, entry)
        free -= request.reservation.costWei
        granted.push({ waiting: request, entry })
        changed = true
        offer = next.next().value
      } catch (error) {
        // This one's trouble; the nonce that it was offered goes to the next.
        request.reject(error)
      }
    }
    return { granted, ledger: changed ? { ...ledger, balanceWei: balance.toString() } : undefined }
  }

  async function landed(chain: EthereumChain, entry: InFlight): Promise<boolean> {
    for (const hash of hashesOf(entry)) if ((await chain.receipt(hash as Hex, signal)) !== undefined) return true
    return false
  }

  async function drain(name: string): Promise<void> {
    const batch = waiting.get(name) ?? []
    waiting.delete(name)
    if (batch.length === 0) return
    const open = new Set(batch)
    try {
      const granted = await update(name, async (signer) => {
        const byNetwork = Map.groupBy(open, (entry) => entry.reservation.network)
        const granted: { waiting: Waiting; entry: InFlight }[] = []
        const ledgers: Ledger[] = []
        for (const [network, requests] of byNetwork) {
          try {
            const result = await plan(signer, network, requests)
            granted.push(...result.granted)
            if (result.ledger) ledgers.push(result.ledger)
            const still = new Set(result.granted.map((grant) => grant.waiting))
            for (const request of requests) if (!still.has(request)) open.delete(request)
          } catch (error) {
            for (const request of requests) {
              request.reject(error)
              open.delete(request)
            }
          }
        }
        return ledgers.length === 0 ? { value: granted } : { ledgers, value: granted }
      })
      deps.onWrite?.(name, granted.length)
      for (const { waiting: request, entry } of granted) request.resolve(entry)
    } catch (error) {
      for (const request of open) request.reject(error)
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
