import { ChainError } from '../../src/chains/ethereum/chain.ts'
import { gwei } from '../../src/lib/amounts.ts'
import { createFatal, type Fate, pick, type Strikes, type Walked } from '../../src/operator/testing/fates.ts'
import { failureOf } from '../../src/operator/testing/misfortune.ts'
import { add } from '../../src/operator/testing/rows.ts'
import { seededRandom } from '../../src/operator/testing/test-clock.ts'
import { createWorld, EXIT, GWEI, KEY, type Operator } from '../../src/operator/testing/world.ts'
import { ethereumStake } from '../../src/resources/ethereum-stake.ts'
import { ALLOW_REMAKES_ANNOTATION, CONFIRM_DELETE_ANNOTATION, DISREGARD_SUBMISSION_ANNOTATION } from '../../src/resources/meta.ts'
import { validatorExit } from '../../src/resources/validator-exit.ts'
import { validatorWithdrawal } from '../../src/resources/validator-withdrawal.ts'

/** How often each misfortune comes to an EthereumStake, a ValidatorExit or a ValidatorWithdrawal. */
export const weights = {
  'an operator ends': 4,
  'a call fails': 3,
  'an operator sees no changes': 2,
  'operators see changes again': 2,
  'a copy of the staking API is kept': 2,
  'the staking API is set to a copy': 5,
  'the staking API is set to nothing': 3,
  'a copy of etcd is kept': 2,
  'etcd is set to a copy': 3,
  'the log is lost': 3,
  'status is lost': 4,
  'status is set to an earlier one': 2,
  'status is forged': 4,
  'it is deleted': 2,
  'its deletion is confirmed': 1,
  'it is created anew': 2,
  'it adopts a stake': 2,
  'it is suspended, or goes on': 2,
  'its policy changes': 2,
  'its signer is suspended, or goes on': 1,
  'nodes lose what waits': 3,
  'nodes take and lose, or keep': 2,
  'the second node is another': 3,
  'gas costs more, or less': 3,
  'a request costs more, or less': 2,
  'blocks leave the chain': 3,
  'the staking API lies once': 2,
  'blocks pass': 4,
  'an hour passes': 1,
  'another asks': 2,
} as const
export type Peril = keyof typeof weights

const OTHER = 'team-a/other'
const noAnswer = () => new ChainError('unavailable', 'no answer')
/** A node that does as it should. */
const healthy = {
  silent: false,
  stillAt: undefined,
  lag: 0,
  fork: undefined,
  forgetful: false,
  liesAboutFinal: false,
  keepsToItself: false,
}
type Status = { readonly [field: string]: unknown }
interface Resource {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>>; readonly deletionTimestamp?: string }
  readonly spec: { readonly suspend?: boolean; readonly adopt?: { readonly stakeId: string } }
  readonly status?: Status
}

/** One life of a resource with its misfortunes, beside another's stake of the same signer; then calm. @returns how it ended, and what must not have been */
export async function walk(key: string, fates: readonly Fate<Peril>[]): Promise<Walked> {
  const world = createWorld({ depth: 3, nodes: 2, bumpAfterMs: 20_000 })
  const { chain, service, requests, records } = world
  world.addSigner()
  world.addStake(OTHER)
  await world.settle(world.start(), [OTHER], 20)
  const others = world.status(OTHER)
  add(world, key)

  const name = key.slice(key.indexOf(':') + 1)
  const collection = (key === KEY ? world.stakes : key === EXIT ? world.exits : world.withdrawals) as unknown as {
    get(key: string): Resource | undefined
    edit(key: string, change: (object: Resource) => unknown): unknown
    remove(key: string): void
  }
  const here = () => collection.get(name)
  const edit = (change: (object: Resource) => unknown): undefined => void (here() && collection.edit(name, change))
  const editSpec = (change: object) => edit((one) => ({ ...one, spec: { ...one.spec, ...change } }))
  const editStatus = (change: (status: Status) => Status | undefined) => edit((one) => ({ ...one, status: change(one.status ?? {}) }))
  const annotate = (annotations: Readonly<Record<string, string>>) =>
    edit((one) => ({ ...one, metadata: { ...one.metadata, annotations: { ...one.metadata.annotations, ...annotations } } }))

  const copyApi = (): (() => void) => {
    const both = [service.copy(), requests.copy()]
    return () => {
      for (const set of both) set()
    }
  }
  const nothing = copyApi()
  const backups: (() => void)[] = [nothing]
  const etcd: (() => void)[] = []
  const earlier: Status[] = []
  const problems: string[] = []
  const random = seededRandom(fates.length)
  let forgotten = 0
  let wentUnpaid = 0
  let wasConfirmed = false
  let created = 1
  let extras = 0
  let isHere = true
  /** Its status shows what it pays for. */
  let isShown = false
  let wasLogLost = false
  /** What the resource asks for, as often as it is on the chain. */
  const made = (): number =>
    key === KEY
      ? chain.deposits().filter(({ pubkey }) => pubkey === mine()).length
      : chain.requests().filter(({ pubkey }) => pubkey === world.validator()).length
  /** The stake's own validator, by what was asked of the staking API. */
  const mine = (): string | undefined => ownPubkeys()[0]
  const ownPubkeys = (): readonly string[] => {
    const foreign = new Set([
      others.depositData?.pubkey,
      ...world.stakes
        .list()
        .filter(({ metadata }) => metadata.name.startsWith('extra'))
        .map(({ status }) => status?.depositData?.pubkey),
    ])
    return [...new Set(chain.deposits().map(({ pubkey }) => pubkey))].filter((pubkey) => !foreign.has(pubkey))
  }

  /**
   * The one thing left out, as docs/explanation/exactly-once.md says: the log, what the staking API was told, and the pools of all nodes, lost together while a
   * transaction that was sent can still land. Of each such transaction one of them must know, or of another version of it under its nonce.
   */
  function isKnown(isElsewhere: (hash: string) => boolean): boolean {
    const hashes = [
      ...service.stakes().flatMap(({ transaction }) => ('hash' in transaction ? (transaction.hash ?? []) : [])),
      ...requests.stored().flatMap((one) => one.hashes),
      ...records.list().flatMap(({ status }) => (status?.attempts ?? []).map(({ hash }) => hash)),
    ]
    const known = new Set(hashes.map((hash) => hash.toLowerCase()))
    const calls = chain.everSent().filter(({ data }) => data !== '0x')
    const knows = ({ hash }: { readonly hash: string }) => known.has(hash.toLowerCase()) || isElsewhere(hash)
    return calls.every((call) => calls.some((version) => version.nonce === call.nonce && version.data === call.data && knows(version)))
  }
  const waits = (hash: string): boolean => chain.pool().some((one) => one.hash === hash)
  const isMined = (hash: string): boolean => chain.outcome(hash) !== undefined
  /** Does it, unless nobody would know then. @returns whether it was done */
  function unlessUnknown(act: () => void, undo: () => void): boolean {
    act()
    if (isKnown((hash) => waits(hash) || isMined(hash))) return true
    undo()
    return false
  }
  const setApi = (to: () => void): undefined => {
    const back = copyApi()
    if (unlessUnknown(to, back)) backups.push(back)
    return undefined
  }
  const operators: Operator[] = []
  const setEtcd = (set: () => void): 'ends' | undefined => {
    const back = world.copyEtcd()
    if (!unlessUnknown(set, back)) return undefined
    wasLogLost = true
    // As the documentation says, operators are stopped before etcd is restored.
    for (const operator of operators) operator.kill()
    return 'ends'
  }
  const forge = (status: Status, arg: number): Status => {
    const transaction = status.transaction as object | undefined
    const forged: readonly Status[] = [
      { ...others, observedGeneration: 1 },
      { ...status, transaction: others.transaction },
      { ...status, transaction: others.transaction, validator: others.validator, consensus: { status: 'Accepted' } },
      ...(transaction === undefined ? [] : [{ ...status, transaction: { ...transaction, state: 'Confirmed' } }]),
      ...(transaction === undefined ? [] : [{ ...status, transaction: { ...transaction, state: 'Failed' } }]),
      { ...status, cancelled: true },
      { ...status, stakeId: others.stakeId, requestId: others.stakeId },
      { ...status, depositData: others.depositData, verifiedRoot: others.verifiedRoot },
      { ...status, consensus: { status: 'Dropped' } },
      { ...status, consensus: { status: 'Accepted' } },
      { ...status, phase: 'Ready', conditions: others.conditions },
      { ...status, transaction: earlier.findLast(({ transaction: one }) => one !== undefined)?.transaction },
    ]
    const { stakeId, requestId, depositData, verifiedRoot, ...rest } = pick(forged, arg) ?? {}
    return key === KEY
      ? { ...rest, ...(stakeId === undefined ? {} : { stakeId }), ...(depositData === undefined ? {} : { depositData, verifiedRoot }) }
      : { ...rest, ...(requestId === undefined ? {} : { requestId }) }
  }
  const strikes: Strikes<Peril> = {
    'an operator ends': () => 'ends',
    'a call fails': (arg) => failureOf(`before ${['chain', 'api', 'requests', 'keys', 'stakes'][Math.floor(arg * 5)]}.x`, random, noAnswer),
    'an operator sees no changes': (arg) => {
      const { caches } = operators[arg < 0.5 ? 0 : 1] as Operator
      const cache = pick([caches.stakes, caches.exits, caches.withdrawals, caches.signers, caches.records, caches.places], (arg * 2) % 1)
      if (cache !== undefined) cache.frozen = true
      return undefined
    },
    'operators see changes again': () => thaw(),
    'a copy of the staking API is kept': () => void backups.push(copyApi()),
    'the staking API is set to a copy': (arg) => setApi(pick(backups, arg) ?? nothing),
    'the staking API is set to nothing': () => setApi(nothing),
    'a copy of etcd is kept': () => void etcd.push(world.copyEtcd()),
    'etcd is set to a copy': (arg) => {
      const copy = pick(etcd, arg)
      return copy === undefined ? undefined : setEtcd(copy)
    },
    'the log is lost': () => {
      if (unlessUnknown(world.loseLog, world.copyEtcd())) wasLogLost = true
      return undefined
    },
    'status is lost': () => editStatus(() => undefined),
    'status is set to an earlier one': (arg) => editStatus((status) => pick(earlier, arg) ?? status),
    'status is forged': (arg) => {
      const { status: schema } = key === KEY ? ethereumStake : key === EXIT ? validatorExit : validatorWithdrawal
      // As the API server takes it.
      const forged = schema.safeParse(JSON.parse(JSON.stringify(forge(here()?.status ?? {}, arg))))
      return forged.success ? editStatus(() => forged.data as Status) : undefined
    },
    'it is deleted': () => void (here() && collection.remove(name)),
    'its deletion is confirmed': () => {
      if (here() === undefined) return undefined
      wasConfirmed = true
      return annotate({ [CONFIRM_DELETE_ANNOTATION]: name.split('/')[1] ?? '' })
    },
    'it is created anew': () => {
      if (here() !== undefined || created >= 3) return undefined
      look()
      created++
      wasConfirmed = false
      isHere = true
      add(world, key)
      return undefined
    },
    'it adopts a stake': (arg) => {
      const stakeId = pick(
        service.stakes().map((one) => one.stakeId),
        arg,
      )
      return key === KEY && stakeId !== undefined ? editSpec({ adopt: { stakeId } }) : undefined
    },
    'it is suspended, or goes on': () => editSpec({ suspend: here()?.spec.suspend !== true }),
    'its policy changes': (arg) =>
      void world.editPolicy(
        pick(
          [
            { maxPerTransaction: '1' },
            { maxPerTransaction: '2048' },
            { maxFeePerGasGwei: '5' },
            { maxFeePerGasGwei: '100' },
            { allowedNamespaces: { names: ['team-b'] } },
            { allowedNamespaces: { names: ['team-a'] } },
          ],
          arg,
        ) ?? {},
      ),
    'its signer is suspended, or goes on': () => void world.editSigner({ suspend: world.signers.get('signer-1')?.spec.suspend !== true }),
    'nodes lose what waits': () => {
      if (isKnown(isMined)) chain.forget()
      return undefined
    },
    'nodes take and lose, or keep': () => {
      // What is lost when it is sent is known by the log, which is written before.
      chain.state.forgetful = !chain.state.forgetful
      return undefined
    },
    'the second node is another': (arg) => {
      const node = chain.nodes[1]
      if (node === undefined) return undefined
      Object.assign(node, healthy)
      const height = chain.height()
      const changes = [
        { silent: true },
        { stillAt: height },
        { lag: 5 },
        { fork: { from: Math.max(1, height - 2), without: chain.everSent().map(({ hash }) => hash) } },
        { forgetful: true },
        { liesAboutFinal: true },
        {},
      ]
      Object.assign(node, pick(changes, arg))
      return undefined
    },
    'gas costs more, or less': (arg) => {
      chain.state.baseFee = (pick([2n, 10n, 25n, 70n, 150n], arg) ?? 10n) * GWEI
      return undefined
    },
    'a request costs more, or less': (arg) => {
      chain.state.requestFee = pick([1n, 150n, 1_000n, 10n ** 16n], arg) ?? 1n
      return undefined
    },
    'blocks leave the chain': (arg) => {
      const depth = Math.min(2, chain.height())
      const isFinal = (hash: string) => chain.outcome(hash)?.final === true
      chain.reorg(depth, arg >= 0.5 && isKnown((hash) => waits(hash) || isFinal(hash)))
      chain.mine(depth, () => undefined)
      return undefined
    },
    'the staking API lies once': (arg) => {
      service.state.lie = (body) => {
        service.state.lie = undefined
        if (body.externalReference !== `EthereumStake/${KEY}`) return body
        return (
          pick(
            [
              { ...body, externalReference: `EthereumStake/${OTHER}` },
              { ...body, amountEth: gwei(1n) },
              { ...body, transaction: { status: 'cancelled' as const } },
              { ...body, transaction: { status: 'awaiting_submission' as const } },
              ...(others.depositData === undefined
                ? []
                : [{ ...body, depositData: { ...body.depositData, pubkey: others.depositData.pubkey } }]),
            ] as (typeof body)[],
            arg,
          ) ?? body
        )
      }
      requests.state.lie = (body) => {
        requests.state.lie = undefined
        return (pick(
          [
            { ...body, status: 'cancelled' },
            { ...body, status: 'failed' },
            { ...body, transaction: {} },
            { ...body, consensus: { status: 'dropped', rules: [] } },
          ],
          arg,
        ) ?? body) as never
      }
      return undefined
    },
    'blocks pass': (arg) => {
      chain.mine(1 + Math.floor(arg * 5))
      return undefined
    },
    'an hour passes': () => void world.clock.advance(3_600_000),
    'another asks': () => {
      if (extras >= 3) return undefined
      world.addStake(`team-a/extra-${++extras}`)
      return undefined
    },
  }
  const fatal = createFatal(fates, strikes)
  operators.push(world.start(fatal.around), world.start(fatal.around))
  function thaw(): undefined {
    for (const { caches } of operators)
      for (const cache of [
        caches.stakes,
        caches.exits,
        caches.withdrawals,
        caches.signers,
        caches.records,
        caches.places,
        caches.approvals,
      ])
        if (cache.frozen) cache.thaw()
  }
  /** The log, status and what the staking API has, lost together: nobody knows what was paid for it, as docs/explanation/exactly-once.md says. */
  const isLost = (): boolean =>
    !isShown &&
    !service.stakes().some(({ externalReference }) => externalReference === `EthereumStake/${name}`) &&
    !records.list().some(({ spec: { owner } }) => owner.kind === 'EthereumStake' && `${owner.namespace}/${owner.name}` === name)
  /** What must hold at every moment: it went, so nothing of it is on the chain, unless a person said that it is to be forgotten. */
  function look(): void {
    const stake = here()
    if (stake !== undefined) {
      isHere = true
      isShown = stake.status?.depositData !== undefined
      if (stake.status !== undefined && earlier.at(-1) !== stake.status) earlier.push(stake.status)
      return
    }
    if (!isHere) return
    isHere = false
    if (wasConfirmed || isLost()) forgotten++
    else if (key === KEY && forgotten === 0 && made() > 0) problems.push('it went, unconfirmed, and is staked')
    else wentUnpaid++
  }
  const keys = () => [key, OTHER, ...Array.from({ length: extras }, (_, index) => `team-a/extra-${index + 1}`)]
  async function round(): Promise<void> {
    await Promise.all(
      operators.map(async (operator, index) => {
        for (let turn = 0; turn < index; turn++) await null
        for (let count = 0; count < 3; count++) {
          for (const one of keys()) if (world.object(one) !== undefined) await operator.visit(one).catch(() => undefined)
          await operator.visitLanes().catch(() => undefined)
        }
      }),
    )
    look()
    for (const [index, operator] of operators.entries()) if (operator.killed) operators[index] = world.start(fatal.around)
    world.clock.advance(12_000)
    chain.mine(1)
    fatal.pass(10)
  }
  for (let count = 0; count < 60 && !fatal.isOver; count++) {
    await round()
    if (world.ready(key)) fatal.pass(40)
  }

  // Calm: all that failed works again.
  fatal.stop()
  thaw()
  Object.assign(chain.state, { forgetful: false, baseFee: 10n * GWEI, requestFee: 1n })
  for (const node of chain.nodes) Object.assign(node, healthy)
  service.state.lie = undefined
  requests.state.lie = undefined
  world.editSigner({ suspend: false })
  world.editPolicy({ maxPerTransaction: '2048', maxFeePerGasGwei: '100', allowedNamespaces: { names: ['team-a'] } })
  if (here()?.spec.suspend === true) editSpec({ suspend: false })
  const reasonOf = () => world.condition('Ready', key)?.reason
  const isHeld = () =>
    here()?.metadata.deletionTimestamp !== undefined && /confirm-delete/.test(world.condition('Ready', key)?.message ?? '') && made() > 0
  const standing = () =>
    here() === undefined
      ? 'gone'
      : isHeld()
        ? 'Held'
        : world.ready(key)
          ? 'Ready'
          : world.stalled(key) !== ''
            ? `Stalled ${world.stalled(key)}`
            : ''
  async function settled(): Promise<string> {
    let calmFor = 0
    let last = ''
    for (let count = 0; count < 60 && calmFor < 8; count++) {
      await round()
      if (count % 3 === 2) world.clock.advance(300_000)
      // A nonce may wait for the signer's next transaction.
      if (count === 20 || count === 30) world.addStake(`team-a/extra-${++extras}`)
      const now = standing()
      calmFor = now !== '' && now === last ? calmFor + 1 : 0
      last = now
    }
    return calmFor >= 8 ? last : `never settles: ${here()?.metadata.deletionTimestamp === undefined ? '' : 'deleted, '}${reasonOf()}`
  }
  /** Does what a message asks a person to do. @returns in words; undefined: nothing that is known here */
  function asked(reason: string, message: string): string | undefined {
    // Whoever looks sees what the key has sent, which is final by now.
    const [, nonce] = /spec\.acknowledgedNonce\D*(\d+)/.exec(message) ?? []
    if (nonce !== undefined) {
      world.editSigner({ acknowledgedNonce: Number(nonce) } as never)
      return `acknowledged nonce ${nonce}`
    }
    if (/database was set back|lost its data|have (that|them|it) brought back/.test(message) && !acted.includes('brought the data back')) {
      const own = new Set([
        here()?.status?.stakeId,
        here()?.status?.requestId,
        here()?.spec.adopt?.stakeId,
        ...records.list().map(({ spec }) => spec.apiId),
      ])
      const holds = (set: () => void) => {
        set()
        return (
          service.stakes().filter(({ stakeId }) => own.has(stakeId)).length +
          requests.stored().filter(({ body }) => own.has(body.requestId)).length
        )
      }
      const best = [copyApi(), ...backups].map((set) => ({ set, count: holds(set) })).toSorted((a, b) => b.count - a.count)[0]
      best?.set()
      return 'brought the data back'
    }
    if (here()?.spec.adopt !== undefined && (reason === 'AdoptionMismatch' || reason === 'RequestRefused')) {
      edit((one) => {
        const { adopt: _gone, ...spec } = one.spec
        return { ...one, spec }
      })
      return 'took spec.adopt away'
    }
    if (message.includes(DISREGARD_SUBMISSION_ANNOTATION)) {
      const [, stx = '', hash = ''] =
        new RegExp(`annotate stx (\\S+) ${DISREGARD_SUBMISSION_ANNOTATION}=(0x[0-9a-fA-F]{64})`).exec(message) ?? []
      // Whoever is asked looks at the chain first: nothing that can land still may be disregarded.
      const sent = chain.everSent().find((one) => one.hash.toLowerCase() === hash.toLowerCase())
      const canLand = sent !== undefined && sent.nonce >= chain.nonce(sent.from)
      if (stx !== '' && !canLand && chain.outcome(hash) === undefined) {
        records.edit(stx, (one) => ({
          ...one,
          metadata: { ...one.metadata, annotations: { ...one.metadata.annotations, [DISREGARD_SUBMISSION_ANNOTATION]: hash } },
        }))
        return `disregarded ${hash}`
      }
      // It can land no more once its nonce is used by another.
      if (canLand && !acted.includes('had another asked')) {
        world.addStake(`team-a/extra-${++extras}`)
        return 'had another asked'
      }
    }
    const [, stx, allowed] = new RegExp(`annotate stx (\\S+) ${ALLOW_REMAKES_ANNOTATION}=(\\d+)`).exec(message) ?? []
    if (stx !== undefined && allowed !== undefined) {
      records.edit(stx, (one) => ({
        ...one,
        metadata: { ...one.metadata, annotations: { ...one.metadata.annotations, [ALLOW_REMAKES_ANNOTATION]: allowed } },
      }))
      return 'allowed another'
    }
    if (/[Rr]emove (these fields|status|the field|it)/.test(message) && !acted.includes('took status away')) {
      editStatus(() => undefined)
      return 'took status away'
    }
    // A tenant has written that it was dropped. Whoever compares with the beacon chain finds nothing of the kind.
    if ((reason === 'DepositDropped' || reason === 'RequestDropped') && !acted.includes('took status away')) {
      editStatus(() => undefined)
      return 'took status away'
    }
    const [, stakeId] = /set spec\.adopt\.stakeId to (\w+)/.exec(message) ?? []
    if (stakeId !== undefined && key === KEY) {
      editSpec({ adopt: { stakeId } })
      return 'adopted'
    }
    // The person has looked: nothing of it is on the chain, and its nonce is used by another.
    const [, lost] = /(?:was told of transaction |was reported or paid \(transaction )(0x[0-9a-f]{64})/.exec(message) ?? []
    if (lost !== undefined && message.includes(CONFIRM_DELETE_ANNOTATION)) {
      const sent = chain.everSent().find(({ hash }) => hash === lost)
      if (sent !== undefined && sent.nonce >= chain.nonce(sent.from) && !acted.includes('had another asked')) {
        world.addStake(`team-a/extra-${++extras}`)
        return 'had another asked'
      }
      strikes['its deletion is confirmed'](0)
      return 'confirmed its deletion'
    }
    // The person has looked, and it is this very withdrawal.
    if (message.includes('If it is this one, nothing is left to do') && made() > 0) {
      collection.remove(name)
      return 'deleted it'
    }
    return undefined
  }
  /** One that etcd's copy doesn't have waits for nothing. */
  const isWaiting = (one: string): boolean => world.object(one) !== undefined && !world.ready(one)
  const acted: string[] = []
  let end = await settled()
  const needy = () => keys().filter((one) => world.stalled(one) !== '')
  /** What is done for the first for which something is known. */
  function help(): string | undefined {
    for (const one of needy()) {
      const act = asked(world.stalled(one), world.condition('Stalled', one)?.message ?? '')
      if (act !== undefined) return act
    }
    return undefined
  }
  for (let acts = 0; acts < 8; acts++) {
    // The last that asked may have asked a moment ago.
    for (let count = 0; count < 15 && needy().length === 0 && keys().some((one) => one !== key && isWaiting(one)); count++) await round()
    const act = help()
    if (act === undefined) break
    acted.push(act)
    end = await settled()
  }
  const { message = '' } = world.condition('Ready', key) ?? {}

  // By the chain's history, and not by what the operator says of itself.
  problems.push(...chain.violations)
  const own = key === KEY ? ownPubkeys().length : made()
  const resources = key === KEY ? 1 + Math.min(created - 1, forgotten) : created
  if (own > resources) problems.push(`made ${own} times for ${resources}`)
  if (key === KEY && forgotten === 0 && wentUnpaid > 0 && own > created - wentUnpaid) problems.push('it went, and was paid afterwards')
  try {
    world.assertMoney({ deposits: chain.deposits().length })
  } catch (error) {
    problems.push((error as Error).message)
  }
  // With the log lost, spec.adopt may take over the stake of another resource of the same namespace, which says so: no money moves by that.
  const tookOthers =
    wasLogLost && records.list().some(({ spec }) => spec.subject === others.depositData?.pubkey && spec.owner.name === 'stake-1')
  if (end === 'Ready') {
    const { pubkey } = (here()?.status?.depositData ?? {}) as { readonly pubkey?: string }
    if (key === KEY && !ownPubkeys().includes(pubkey ?? '') && !tookOthers) problems.push('Ready, and nothing was paid')
    if (key !== KEY && made() === 0) problems.push('Ready, and nothing was asked for')
  }
  if (end.startsWith('never settles')) problems.push(end)
  // One of the same name was asked for before, and was made: it is not asked for again under that name, and says so.
  const isDoneBefore = end === 'Stalled AlreadyRequested' && created > 1 && made() === 1
  if (end.startsWith('Stalled') && !isDoneBefore) problems.push(`needs a person still: ${end}`)
  if (!world.ready(OTHER) && !tookOthers) problems.push(`the other is not ready any more: ${world.condition('Ready', OTHER)?.message}`)
  for (const extra of keys().slice(2))
    if (isWaiting(extra)) problems.push(`${extra} is not ready: ${world.condition('Ready', extra)?.reason}`)
  return { log: [...fatal.log, ...acted.map((act) => `  and a person ${act}`)], end, message, problems }
}
