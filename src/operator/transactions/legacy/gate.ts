import { sameHex } from '../../../lib/hex.ts'
import type { Ledger, StakingSigner } from '../../../resources/staking-signer.ts'
import { classify } from '../../engine/classify.ts'
import { type Halt, wait } from '../../engine/verdict.ts'
import { verdictOf } from '../hindrance.ts'
import type { Standing } from '../memory.ts'
import type { LaneId } from '../names.ts'
import type { RecordObject } from '../store.ts'
import { createImport, type ImportDeps, type Imported, type LegacyResource, ledgersOf } from './import.ts'

/** How soon a resource whose transaction is being taken over is looked at again, in ms. */
const SOON_MS = 2_000

export type Legacy = ReturnType<typeof createLegacy>

/**
 * ▸ Nothing is signed and no resource is looked at before what an earlier version has signed is in the log: a lane that is taken over by half signs nothing,
 * and a status that still holds a claim is neither put right nor let go.
 */
export function createLegacy(
  deps: ImportDeps & {
    /** What a record without an outcome waits for. */
    readonly standing: (record: string) => Standing | undefined
    readonly onImported: (signer: StakingSigner, imported: Imported) => void
    readonly onTrouble: (about: string, why: Standing) => void
  },
) {
  const importing = createImport(deps)
  /** Why the import of a signer does not go on, by its name. */
  const troubles = new Map<string, string>()

  const signersOf = ({ address }: LaneId): readonly StakingSigner[] =>
    [...deps.signers.list()].filter(({ spec }) => spec.chain === 'Ethereum' && sameHex(spec.address, address))

  /** A resource of the version before: it shows a transaction, the log has none of it, and its signer is of that version, or gone. */
  const isLegacy = (kind: string, resource: LegacyResource): boolean => {
    if (resource.status?.transaction === undefined || importing.hasRecord(kind, resource)) return false
    const signer = deps.signers.get(resource.spec.signer ?? '')
    return signer === undefined || ledgersOf(signer).length > 0
  }
  /** Its record was made of claims and shows nothing yet, and its status says that it is done: it stays so until that is looked at. */
  const isBeingProven = (kind: string, { metadata, status }: LegacyResource): boolean =>
    status?.transaction?.state === 'Confirmed' &&
    deps.log
      .ofOwner({ kind, namespace: metadata.namespace ?? '', name: metadata.name })
      .some(
        (record) =>
          record.status?.claims !== undefined &&
          record.status.outcome === undefined &&
          deps.standing(record.metadata.name)?.kind !== 'stall',
      )

  const isPending = (signer: StakingSigner): boolean => ledgersOf(signer).length > 0
  const pending = (): readonly StakingSigner[] => [...deps.signers.list()].filter(isPending)

  /** `what`: of its transactions, as the sentence goes on. */
  function waitFor({ metadata: { name } }: StakingSigner, what: string): Halt {
    const trouble = troubles.get(name)
    return wait(
      'Importing',
      `What an earlier version of the operator has signed with StakingSigner ${name} is being taken into the transaction log. ${what}${trouble === undefined ? '' : ` It does not go on: ${trouble}`}`,
      SOON_MS,
    )
  }

  return {
    /** Names of the signers that are not taken over yet. */
    importing: (): readonly string[] => pending().map(({ metadata }) => metadata.name),

    /** Why nothing is signed in a lane yet; undefined where it may be. */
    hindrance(lane: LaneId): Standing | undefined {
      const signer = signersOf(lane).find(isPending)
      return signer && verdictOf(waitFor(signer, 'Nothing is signed with its key before.'))
    },

    /**
     * ▸ Why a record takes no place in any lane yet: the ledger of another signer names what it is about, and may have it signed. Once that is imported, its
     * place or its record says so.
     */
    hindranceFor({ spec: { subject, owner } }: RecordObject): Halt | undefined {
      const signer = pending().find((one) => ledgersOf(one).some((ledger) => names(ledger, owner.kind, subject)))
      return signer && waitFor(signer, `It may have been for ${subject}: nothing is signed for that before.`)
    },

    /** Ms after which a resource is looked at again, since what it shows is being taken over; undefined where it may be looked at now. */
    async pendingMs(kind: string, resource: LegacyResource, signal: AbortSignal): Promise<number | undefined> {
      const source = importing.sourceOf(kind)
      if (source === undefined || resource.status?.transaction === undefined) return undefined
      if (!isLegacy(kind, resource)) return isBeingProven(kind, resource) ? SOON_MS : undefined
      // A signer takes over its own; nobody does it for one that is gone.
      if (deps.signers.get(resource.spec.signer ?? '') !== undefined) return SOON_MS
      try {
        deps.assertMayAct()
        return (await importing.importResource(source, resource, undefined, signal)) ? SOON_MS : undefined
      } catch (error) {
        signal.throwIfAborted()
        const why = classify(error)
        if (why.kind !== 'conflict') deps.onTrouble(`${kind} ${resource.metadata.namespace}/${resource.metadata.name}`, why)
        return 15_000
      }
    },

    /** @returns ms after which it is tried again; undefined where there is nothing (more) to take over */
    async importSigner(signer: StakingSigner, signal: AbortSignal): Promise<number | undefined> {
      const { name } = signer.metadata
      try {
        const imported = await importing.importSigner(signer, signal)
        if (imported !== undefined) deps.onImported(signer, imported)
        troubles.delete(name)
        return undefined
      } catch (error) {
        signal.throwIfAborted()
        const why = classify(error)
        if (why.kind === 'conflict') return 50
        if (troubles.get(name) !== why.message) deps.onTrouble(`StakingSigner ${name}`, why)
        troubles.set(name, why.message)
        return why.kind === 'wait' ? why.afterMs : 5_000
      }
    },
  }
}

/** Whether a ledger has something of this kind about a validator, under whatever nonce. */
const names = ({ inFlight = [], displacedRequests = [] }: Ledger, kind: string, subject: string): boolean =>
  [...inFlight, ...displacedRequests].some((one) => one.kind === kind && sameHex(one.pubkey ?? '', subject)) ||
  inFlight.some(({ displacedPubkeys = [] }) => displacedPubkeys.some((pubkey) => sameHex(pubkey, subject)))
