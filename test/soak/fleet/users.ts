import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { ApiRequest } from '../../cluster/api-request.ts'
import type { Random } from '../../crash/random.ts'
import {
  namespace,
  PAYER,
  SIGNER,
  SOL,
  signer,
  solanaSigner,
  solanaStake,
  stake,
  type ValidatorRef,
  validatorExit,
  validatorWithdrawal,
} from '../../stack/resources.ts'
import { NETWORK, SOLANA_STAKER, SOLANA_STAKER_ADDRESS, SOLANA_WITHDRAWER, SOLANA_WITHDRAWER_ADDRESS } from '../../stack/stack.ts'
import { at, conditionOf, isInFlight, type KubernetesObject, nameOf } from '../oracle/kubernetes.ts'
import { ofKind, type SolanaWish, type Validator, type Wish, wishName } from '../oracle/wishes.ts'
import { type Answer, createPerson } from './person.ts'
import type { Fleet } from './world.ts'

type Json = Readonly<Record<string, unknown>>

/** A wish, with the manifest that says it: what the users' Git has. */
interface Kept {
  readonly wish: Wish
  readonly plural: string
  manifest: { readonly spec: Json; readonly [field: string]: unknown }
  isDeleted: boolean
  /** It is gone so that it can be made anew. */
  isMadeAnew?: boolean
  /** Its deletion is meant, money or not. */
  isConfirmed: boolean
}

const SPACES = ['team-a', 'team-b'] as const
/** Limits and caps of the signer change between these two. */
export const LIMIT = { count: 24, seconds: 30 }
const LOW_LIMIT = 12
const CAP_GWEI = 60
const LOW_CAP_GWEI = 20
export const CAPS = { maxFeePerGasWei: BigInt(CAP_GWEI) * 1_000_000_000n, maxRequestFeeWei: 1_000_000_000_000_000n }
/** After etcd was set back, what is on its way may be in no record for so long: nothing is taken for held. */
const FORGETFUL_MS = 90_000
/** What a user may change. */
const changeable = ['suspend', 'desiredState', 'maxFeePerGasGwei', 'adopt'] as const
const PLURALS = {
  EthereumStake: 'ethereumstakes',
  ValidatorExit: 'validatorexits',
  ValidatorWithdrawal: 'validatorwithdrawals',
  SolanaStake: 'solanastakes',
} as const

/** Where the records of a wish say that money goes to on Solana. */
const accountsOf = (records: readonly KubernetesObject[], { kind, namespace, name }: Wish): readonly string[] =>
  records.flatMap((record) => {
    const owner = at(record, 'spec', 'owner')
    const isOwn = at(owner, 'kind') === kind && at(owner, 'namespace') === namespace && at(owner, 'name') === name
    const subject = at(record, 'spec', 'subject')
    return isOwn && typeof subject === 'string' ? [subject] : []
  })

const policy = (count = LIMIT.count, cap = CAP_GWEI) => ({
  allowedNamespaces: { names: [...SPACES] },
  maxPerTransaction: '64',
  validators: 'Any',
  maxFeePerGasGwei: String(cap),
  limits: [{ window: `${LIMIT.seconds}s`, maxCount: count }],
})

/** What teams, the owner of the keys and a person on duty do, at random. Each knows of the cluster what `kubectl` shows. */
export function createUsers({ cluster, anvil, solana, stack, validators }: Fleet, random: Random) {
  const person = createPerson({ anvil, solana, stack })
  const all: Kept[] = []
  const unused = [...validators]
  let made = 0
  let forgetfulUntil = 0

  /** Until it is answered: the API server may be away. */
  async function ask(request: ApiRequest): Promise<{ readonly status: number; readonly body: unknown }> {
    for (;;) {
      const answer = await cluster.request({ timeoutMs: 3_000, ...request }).catch(() => undefined)
      if (answer !== undefined && answer.status < 500 && answer.status !== 429) return answer
      await delay(300)
    }
  }
  const pathOf = ({ plural, wish }: Kept, more = ''): string =>
    `/apis/staking.dev/v1alpha1/namespaces/${wish.namespace}/${plural}/${wish.name}${more}`
  const patch = (path: string, body: object) => ask({ method: 'PATCH', path, contentType: 'application/merge-patch+json', body })
  const list = async (plural: string): Promise<readonly KubernetesObject[]> => {
    const { body } = await ask({ path: `/apis/staking.dev/v1alpha1/${plural}` })
    const { kind, items } = body as { readonly kind: string; readonly items: readonly KubernetesObject[] }
    return items.map((item) => ({ ...item, kind: kind.replace(/List$/, '') }))
  }
  const objects = async (): Promise<ReadonlyMap<string, KubernetesObject>> =>
    new Map((await Promise.all(Object.values(PLURALS).map(list))).flat().map((object) => [nameOf(object), object]))
  const now = async (wish: Wish): Promise<number> =>
    wish.kind === 'SolanaStake' ? Number(solana.ledger.head().slot) : anvil.blockNumber().catch(() => Number.POSITIVE_INFINITY)

  async function wishFor(wish: Wish, manifest: Json): Promise<void> {
    const kept: Kept = {
      wish,
      plural: PLURALS[wish.kind],
      manifest: manifest as Kept['manifest'],
      isDeleted: false,
      isConfirmed: false,
    }
    all.push(kept)
    await put(kept)
  }
  async function put(kept: Kept): Promise<void> {
    const { wish, plural, manifest } = kept
    const { status, body } = await ask({
      method: 'POST',
      path: `/apis/staking.dev/v1alpha1/namespaces/${wish.namespace}/${plural}`,
      body: manifest,
    })
    if (status !== 201 && status !== 409) throw new Error(`${wishName(wish)} was refused: ${status} ${JSON.stringify(body)}`)
  }
  /** Changes what Git has, and the cluster. */
  async function change(kept: Kept, spec: Json): Promise<void> {
    kept.manifest = { ...kept.manifest, spec: { ...kept.manifest.spec, ...spec } }
    await patch(pathOf(kept), { spec })
  }
  /** From here on nothing may be paid for it, unless that is on its way. */
  async function hold({ wish }: Kept, why: string): Promise<void> {
    if (performance.now() < forgetfulUntil) return
    const records = await list('stakingtransactions')
    if (!isInFlight(records, wish.kind, wish.namespace, wish.name)) wish.holds.push({ why, from: await now(wish) })
  }
  const release = async ({ wish }: Kept): Promise<void> => {
    const until = await now(wish)
    for (const one of wish.holds) one.until ??= until
  }

  const nextName = (prefix: string): string => `${prefix}-${++made}`
  const own = (kind: Wish['kind']): readonly Kept[] => all.filter(({ wish, isDeleted }) => wish.kind === kind && !isDeleted)
  const anyOf = <T>(list: readonly T[]): T | undefined => (list.length === 0 ? undefined : random.pick(list as [T, ...T[]]))
  /** A validator that nobody has asked to leave. */
  function validator(space: string): { readonly of: Validator; readonly ref: ValidatorRef } | undefined {
    const leaving = ofKind(
      all.map(({ wish }) => wish),
      'ValidatorExit',
    ).map((wish) => JSON.stringify([wish.namespace, wish.validator]))
    const stakes = own('EthereumStake')
      .filter(({ wish, manifest }) => wish.namespace === space && manifest.spec.withdrawalAddress === PAYER)
      .filter(({ wish }) => !leaving.includes(JSON.stringify([space, { stake: wish.name }])))
    const found = random.between(0, 2) === 0 ? anyOf(stakes) : undefined
    if (found !== undefined) return { of: { stake: found.wish.name }, ref: { stakeRef: { name: found.wish.name } } }
    const pubkey = unused.shift()
    return pubkey === undefined ? undefined : { of: { pubkey }, ref: { network: NETWORK, pubkey } }
  }

  const acts: Readonly<Record<string, () => Promise<void>>> = {
    'apply a stake of the signer': async () => {
      const space = random.pick(SPACES)
      const name = nextName('own')
      const gwei = 34_000_000_000n + BigInt(made)
      const amountEth = `34.${String(made).padStart(9, '0')}`
      const credentials = `0x02${'0'.repeat(22)}${PAYER.slice(2).toLowerCase()}`
      await wishFor(
        { kind: 'EthereumStake', namespace: space, name, amountGwei: gwei, credentials, holds: [] },
        stake(name, { amountEth, withdrawalAddress: PAYER }, { namespace: space }),
      )
    },
    'apply a stake': async () => {
      const space = random.pick(SPACES)
      const name = nextName('stake')
      const address = `0x${made.toString(16).padStart(8, '0')}${'5a'.repeat(16)}`
      const isOld = random.between(0, 2) === 0
      const credentials = `0x0${isOld ? 1 : 2}${'0'.repeat(22)}${address.slice(2)}`
      await wishFor(
        { kind: 'EthereumStake', namespace: space, name, amountGwei: 32_000_000_000n, credentials, holds: [] },
        stake(
          name,
          { amountEth: '32', withdrawalAddress: address, credentialsType: isOld ? 'Execution' : 'Compounding' },
          { namespace: space },
        ),
      )
    },
    'apply a Solana stake': async () => {
      const space = random.pick(SPACES)
      const name = nextName('sol')
      const lamports = 5n * SOL + BigInt(made)
      const [staker, withdrawer] = [SOLANA_STAKER_ADDRESS, SOLANA_WITHDRAWER_ADDRESS]
      const vote = solana.validator.voteAccount
      await wishFor(
        { kind: 'SolanaStake', namespace: space, name, lamports, staker, withdrawer, vote, desired: 'Active', holds: [] },
        solanaStake(name, { amountLamports: String(lamports) }, { namespace: space }),
      )
    },
    'apply a withdrawal': async () => {
      const space = random.pick(SPACES)
      const from = validator(space)
      if (from === undefined) return
      const name = nextName('part')
      const amountGwei = 100_000_000n + BigInt(made)
      await wishFor(
        { kind: 'ValidatorWithdrawal', namespace: space, name, validator: from.of, amountGwei, holds: [] },
        validatorWithdrawal(name, from.ref, String(amountGwei), {}, { namespace: space }),
      )
    },
    'apply an exit': async () => {
      const space = random.pick(SPACES)
      const from = validator(space)
      if (from === undefined) return
      const name = nextName('exit')
      await wishFor(
        { kind: 'ValidatorExit', namespace: space, name, validator: from.of, holds: [] },
        validatorExit(name, from.ref, {}, { namespace: space }),
      )
    },
    'suspend a resource': async () => {
      const kept = anyOf(all.filter(({ isDeleted, manifest }) => !isDeleted && manifest.spec.suspend !== true).slice(-6))
      if (kept === undefined) return
      await change(kept, { suspend: true })
      await hold(kept, 'suspended')
    },
    'go on with what is suspended': async () => {
      const kept = anyOf(all.filter(({ isDeleted, manifest }) => !isDeleted && manifest.spec.suspend === true))
      if (kept === undefined) return
      await release(kept)
      await change(kept, { suspend: false })
    },
    'delete a resource': async () => {
      const kept = anyOf(all.filter(({ isDeleted }) => !isDeleted).slice(-8))
      if (kept === undefined) return
      kept.isConfirmed = random.between(0, 3) === 0
      await remove(kept)
      await hold(kept, 'deleted')
    },
    'ask for a look': async () => {
      const kept = anyOf(all)
      if (kept !== undefined) await patch(pathOf(kept), { metadata: { annotations: { 'staking.dev/reconcile-at': String(made) } } })
    },
    'wipe a status': async () => {
      const kept = anyOf(all)
      if (kept !== undefined) await patch(pathOf(kept, '/status'), { status: null })
    },
    'forge an origin': async () => {
      const kept = anyOf(own('EthereumStake'))
      if (kept === undefined) return
      await patch(pathOf(kept), { metadata: { annotations: { 'staking.dev/origin': `${crypto.randomUUID()}/team-b/somebody-elses` } } })
    },
    'lower a cap': async () => {
      const kept = anyOf(own('EthereumStake').slice(-6))
      if (kept !== undefined) await change(kept, { maxFeePerGasGwei: '0.5' })
    },
    'raise a cap': async () => {
      const kept = anyOf(own('EthereumStake').filter(({ manifest }) => manifest.spec.maxFeePerGasGwei !== undefined))
      if (kept !== undefined) await change(kept, { maxFeePerGasGwei: '50' })
    },
    'let a Solana stake go on': async () => {
      const kept = anyOf(own('SolanaStake'))
      if (kept === undefined) return
      const wish = kept.wish as SolanaWish
      const next = wish.desired === 'Active' && random.between(0, 2) === 0 ? 'Inactive' : 'Withdrawn'
      wish.desired = next
      await change(kept, { desiredState: next })
    },
    'tighten the signer': () => ofSigner({ policy: policy(LOW_LIMIT, LOW_CAP_GWEI) }),
    'loosen the signer': () => ofSigner({ policy: policy() }),
    'suspend the signer': async () => {
      await ofSigner({ suspend: true })
      await delay(random.between(500, 3_000))
      await ofSigner({ suspend: false })
    },
  }
  const creating = Object.keys(acts).filter((name) => name.startsWith('apply'))
  const others = Object.keys(acts).filter((name) => !name.startsWith('apply'))

  const signerPath = `/apis/staking.dev/v1alpha1/stakingsigners/${SIGNER}`
  const ofSigner = async (spec: Json): Promise<void> => {
    await patch(signerPath, { spec })
  }
  const confirm = (kept: Kept) => patch(pathOf(kept), { metadata: { annotations: { 'staking.dev/confirm-delete': kept.wish.name } } })
  async function remove(kept: Kept): Promise<void> {
    kept.isDeleted = true
    if (kept.isConfirmed) await confirm(kept)
    await ask({ method: 'DELETE', path: pathOf(kept) })
  }

  /** Does what the person on duty has decided. @returns it in words */
  async function follow(kept: Kept, answer: Answer | undefined): Promise<string | undefined> {
    const name = wishName(kept.wish)
    switch (answer?.is) {
      case undefined:
        return undefined
      case 'annotate': {
        const { transaction, annotation, value } = answer
        await patch(`/apis/staking.dev/v1alpha1/stakingtransactions/${transaction}`, { metadata: { annotations: { [annotation]: value } } })
        return `is certain that ${value} never lands for ${name}`
      }
      case 'let go':
        kept.isConfirmed = kept.isDeleted
        await confirm(kept)
        return `has looked for what was told of ${name}, and lets it go`
      case 'delete':
        await remove(kept)
        return `deletes ${name}, which was done before`
      case 'make anew':
        kept.isMadeAnew = true
        await confirm(kept)
        await ask({ method: 'DELETE', path: pathOf(kept) })
        return `makes ${name} anew, which the staking API has lost, and nobody has paid`
    }
  }

  return {
    wishes: (): readonly Wish[] => all.map(({ wish }) => wish),
    list,
    async begin(): Promise<void> {
      for (const space of SPACES) await ask({ method: 'POST', path: '/api/v1/namespaces', body: namespace(space) })
      const solanaPolicy = { policy: { allowedNamespaces: { names: [...SPACES] } } }
      for (const one of [
        signer({ policy: policy() }),
        solanaSigner(SOLANA_STAKER, solanaPolicy),
        solanaSigner(SOLANA_WITHDRAWER, solanaPolicy),
      ])
        await ask({ method: 'POST', path: '/apis/staking.dev/v1alpha1/stakingsigners', body: one })
    },
    /** Does one thing. @returns what */
    async act(): Promise<string> {
      const name = random.pick((random.between(0, 5) < 3 ? creating : others) as [string, ...string[]])
      await acts[name]?.()
      return name
    },
    /** etcd was set back: what is held is not held any more, since the cluster may have forgotten it. Call it before an operator runs again. */
    async forgotten(): Promise<void> {
      forgetfulUntil = performance.now() + FORGETFUL_MS
      person.forget()
      for (const kept of all) await release(kept)
    },
    /** As a tool that applies from Git all the time: what is missing is made again, what differs is put right, what was deleted is deleted. */
    async applyAll(): Promise<void> {
      await this.begin()
      const there = await objects()
      for (const kept of all) {
        const object = there.get(wishName(kept.wish))
        if (kept.isDeleted) {
          if (object !== undefined && (object.metadata.deletionTimestamp === undefined || kept.isConfirmed)) await remove(kept)
        } else if (object === undefined) await put(kept)
        else {
          const spec = Object.fromEntries(changeable.map((field) => [field, kept.manifest.spec[field]] as const))
          const differs = changeable.filter(
            (field) => spec[field] !== undefined && !isDeepStrictEqual(at(object, 'spec', field), spec[field]),
          )
          if (differs.length > 0) await patch(pathOf(kept), { spec: Object.fromEntries(differs.map((field) => [field, spec[field]])) })
        }
      }
    },
    /** The person on duty does what the messages say. @returns what */
    async tend(): Promise<readonly string[]> {
      const done: string[] = []
      for (const object of await list('stakingsigners')) {
        const stalled = conditionOf(object, 'Stalled')
        const nonce = /spec\.acknowledgedNonce: (\d+)/.exec(stalled?.message ?? '')?.[1]
        if (nonce === undefined || stalled?.status !== 'True') continue
        await ofSigner({ acknowledgedNonce: Number(nonce) })
        done.push(`acknowledges nonce ${nonce}`)
      }
      const [there, records] = [await objects(), await list('stakingtransactions')]
      const isKept = (name: string): boolean => there.has(name) || all.some(({ wish, isDeleted }) => !isDeleted && wishName(wish) === name)
      for (const object of there.values()) {
        const ids = object.kind === 'ValidatorExit' ? await person.takesBack(object, isKept).catch(() => []) : []
        if (ids.length > 0) done.push(`cancels ${ids.join()}, which no resource has, for ${nameOf(object)}`)
      }
      for (const kept of all) {
        const object = there.get(wishName(kept.wish))
        if (object === undefined && !kept.isDeleted && kept.isMadeAnew === true) {
          await put(kept)
          kept.isMadeAnew = false
        }
        const stalled = object === undefined ? undefined : conditionOf(object, 'Stalled')
        if (object === undefined || stalled?.status !== 'True') continue
        const line = await follow(kept, await person.answerTo(object, accountsOf(records, kept.wish)))
        if (line !== undefined) done.push(line)
        if (kept.isDeleted) continue
        const stakeId = /spec\.adopt\.stakeId to ([A-Za-z0-9_-]+)/.exec(stalled.message)?.[1]
        if (stalled.reason === 'AlreadyStaked' && stakeId !== undefined && at(object, 'spec', 'adopt') === undefined) {
          await change(kept, { adopt: { stakeId } })
          done.push(`has ${wishName(kept.wish)} adopt ${stakeId}`)
        }
        if (stalled.reason === 'CopiedResource') {
          await patch(pathOf(kept), { metadata: { annotations: { 'staking.dev/origin': null } } })
          done.push(`takes a forged origin from ${wishName(kept.wish)}`)
        }
      }
      return done
    },
    /**
     * Nothing holds anything up any more but what is suspended or deleted, which stays so. The limit goes too: what was signed by a clock hours ahead fills it for as long, as the chain is ahead from
     * here on.
     */
    async finish(): Promise<void> {
      await ofSigner({ policy: { ...policy(), limits: null }, suspend: false })
      for (const kept of all.filter(({ isDeleted, manifest }) => !isDeleted && manifest.spec.maxFeePerGasGwei !== undefined))
        await change(kept, { maxFeePerGasGwei: '50' })
    },
  }
}
export type Users = ReturnType<typeof createUsers>
