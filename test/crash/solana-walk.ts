import { SolanaError } from '../../src/chains/solana/chain.ts'
import { decodeInstruction } from '../../src/chains/solana/instructions.ts'
import { decodeMessage } from '../../src/chains/solana/message.ts'
import { testAddress } from '../../src/chains/solana/testing.ts'
import { lamports } from '../../src/lib/amounts.ts'
import type { KubeObject } from '../../src/operator/kube/objects.ts'
import { createFatal, type Fate, pick, type Strikes, type Walked } from '../../src/operator/testing/fates.ts'
import { failureOf } from '../../src/operator/testing/misfortune.ts'
import { AMOUNT, createSolanaWorld, KEY, type SolanaWorld } from '../../src/operator/testing/solana-world.ts'
import { seededRandom } from '../../src/operator/testing/test-clock.ts'
import { findCondition } from '../../src/resources/conditions.ts'
import { CONFIRM_DELETE_ANNOTATION } from '../../src/resources/meta.ts'
import { type SolanaStakeStatus, solanaStake } from '../../src/resources/solana-stake.ts'
import { type StakingTransaction, stakingTransaction } from '../../src/resources/staking-transaction.ts'

/** How often each misfortune comes to a SolanaStake. */
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
  'the log is lost': 2,
  'status is lost': 4,
  'status is set to an earlier one': 2,
  'status is forged': 4,
  'it is deleted': 2,
  'its deletion is confirmed': 1,
  'it is created anew': 2,
  'it adopts a stake': 2,
  'it is suspended, or goes on': 2,
  'its policy changes': 2,
  'a signer is suspended, or goes on': 1,
  'nodes lose what waits': 2,
  'nodes take and lose, or keep': 2,
  'the second node is another': 3,
  'what was signed expires': 4,
  'the last block is another': 2,
  'the staking API lies once': 2,
  'blocks pass': 4,
  'the next state is asked for': 3,
} as const
export type Peril = keyof typeof weights

const OTHER = 'team-a/other'
const order = ['Active', 'Inactive', 'Withdrawn'] as const
const noAnswer = () => new SolanaError('unavailable', 'no answer')
type Operator = ReturnType<SolanaWorld['start']>

/** What the cluster's own history says of money. */
function historyOf({ cluster }: SolanaWorld) {
  const done = cluster
    .landed()
    .filter(({ failure }) => failure === undefined)
    .flatMap(({ message }) => message.instructions.map(decodeInstruction))
  return {
    funded: done.flatMap((one) => (one.kind === 'initialize' ? [one.account] : [])),
    withdrawn: done.flatMap((one) => (one.kind === 'withdraw' ? [one] : [])),
  }
}

/** A stake account for which the transaction that pays was signed. */
const signedFor = ({ keys }: SolanaWorld): readonly string[] =>
  keys.signed
    .filter(({ what }) => what === 'message')
    .flatMap(({ bytes }) => decodeMessage(bytes).instructions.map(decodeInstruction))
    .flatMap((one) => (one.kind === 'initialize' ? [one.account] : []))

/** One life of a SolanaStake with its misfortunes, beside another's that is Ready; then calm. @returns how it ended, and what must not have been */
export async function walk(fates: readonly Fate<Peril>[]): Promise<Walked> {
  const world = createSolanaWorld()
  world.addSigners()
  world.addStake({}, OTHER)
  await world.settle(world.start(), { key: OTHER })
  const others = world.status(OTHER)
  world.addStake()

  const records = world.collection<StakingTransaction & KubeObject>(stakingTransaction)
  const nothing = world.service.copy()
  const backups: (() => void)[] = [nothing]
  const etcd: { readonly set: () => void; readonly log: ReadonlySet<string> }[] = []
  const earlier: SolanaStakeStatus[] = []
  const problems: string[] = []
  const random = seededRandom(fates.length)
  /** How many resources of the name there were of whose stakes a person said that they are to be forgotten. */
  let forgotten = 0
  let wasConfirmed = false
  let created = 1
  let isHere = true

  const logged = (): ReadonlySet<string> =>
    new Set(
      records
        .list()
        .filter(
          ({ spec, status }) => spec.purpose === 'SolanaStake' && ((status?.attempts ?? []).length > 0 || status?.outcome !== undefined),
        )
        .map(({ spec }) => spec.subject ?? ''),
    )
  const atApi = (): ReadonlySet<string> => new Set(world.service.stakes().map(({ stakeAccount }) => stakeAccount))
  /**
   * The one thing left out, as docs/explanation/exactly-once.md says: the log and what the staking API was told, lost together. An account for which something
   * was signed is then known to nobody, since its address is made of the stake's id. Each alone, and one after the other is known again, is not left out.
   */
  const isKnown = (log: ReadonlySet<string>, api: ReadonlySet<string>): boolean =>
    signedFor(world).every((account) => log.has(account) || api.has(account))
  const setApi = (to: () => void): void => {
    const back = world.service.copy()
    to()
    if (isKnown(logged(), atApi())) backups.push(back)
    else back()
  }
  const setEtcd = ({ set, log }: { readonly set: () => void; readonly log: ReadonlySet<string> }): Error | 'ends' | undefined => {
    if (!isKnown(log, atApi())) return undefined
    set()
    // As the documentation says, operators are stopped before etcd is restored.
    for (const operator of operators) operator.kill()
    return 'ends'
  }
  const forge = (status: SolanaStakeStatus, arg: number): SolanaStakeStatus => {
    const { transactions, ...rest } = status
    const paid = others.transactions?.stake
    const ready = { type: 'Ready', status: 'True', reason: 'Succeeded', message: '', lastTransitionTime: '2030-01-01T00:00:00Z' } as const
    const forged: readonly object[] = [
      { ...others, observedGeneration: 1 },
      { ...status, stakeId: others.stakeId, stakeAccount: others.stakeAccount, verifiedStakeId: others.stakeId },
      { ...status, transactions: { ...transactions, stake: paid } },
      { ...status, transactions: { ...transactions, stake: { attempt: 1, state: 'Expired' } } },
      { ...status, transactions: { ...transactions, stake: { attempt: 1, state: 'Confirmed', slot: 1 } } },
      {
        ...status,
        transactions: { ...transactions, withdrawal: { attempt: 1, state: 'Confirmed', slot: 1 } },
        protocol: { ...(status.protocol ?? others.protocol), status: 'Withdrawn' },
      },
      { ...rest, looked: true },
      { ...rest, looked: true, cancelled: true },
      { ...others, transactions: undefined, looked: true, cancelled: true },
      { ...status, conditions: [ready], phase: 'Active' },
      { ...status, verifiedStakeId: undefined },
      { stakeId: earlier[0]?.stakeId ?? others.stakeId },
    ]
    return pick(forged, arg) as SolanaStakeStatus
  }
  const here = () => world.stakes.get(KEY)
  const strikes: Strikes<Peril> = {
    'an operator ends': () => 'ends',
    'a call fails': (arg) =>
      arg < 0.7
        ? failureOf(arg < 0.35 ? 'before chain.looks' : 'before api.solanaStake', random, noAnswer)
        : failureOf('before stakes.mergePatch', random, noAnswer),
    'an operator sees no changes': (arg) => {
      const { caches } = operators[arg < 0.5 ? 0 : 1] as Operator
      const cache = pick([caches.stakes, caches.log, caches.signers], (arg * 2) % 1)
      if (cache !== undefined) cache.frozen = true
      return undefined
    },
    'operators see changes again': () => thaw(),
    'a copy of the staking API is kept': () => void backups.push(world.service.copy()),
    'the staking API is set to a copy': (arg) => void setApi(backups[Math.floor(arg * backups.length)] ?? nothing),
    'the staking API is set to nothing': () => void setApi(nothing),
    'a copy of etcd is kept': () => void etcd.push({ set: world.copyEtcd(), log: logged() }),
    'etcd is set to a copy': (arg) => {
      const copy = pick(etcd, arg)
      return copy === undefined ? undefined : setEtcd(copy)
    },
    'the log is lost': () => {
      if (!isKnown(new Set(), atApi())) return
      for (const { metadata } of records.list()) records.vanish(metadata.name)
      return undefined
    },
    'status is lost': () => void (here() && world.editStatus(() => undefined)),
    'status is set to an earlier one': (arg) => void (here() && world.editStatus((status) => pick(earlier, arg) ?? status)),
    'status is forged': (arg) => {
      if (here() === undefined) return undefined
      // As the API server takes it.
      const forged = solanaStake.status.safeParse(JSON.parse(JSON.stringify(forge(world.status(), arg))))
      if (forged.success) world.editStatus(() => forged.data as SolanaStakeStatus)
      return undefined
    },
    'it is deleted': () => void (here() && world.stakes.remove(KEY)),
    'its deletion is confirmed': () => {
      if (here() === undefined) return undefined
      world.annotate({ [CONFIRM_DELETE_ANNOTATION]: 'stake-1' })
      wasConfirmed = true
      return undefined
    },
    'it is created anew': () => {
      if (here() !== undefined || created >= 3) return undefined
      created++
      look()
      wasConfirmed = false
      world.addStake()
      isHere = true
      return undefined
    },
    'it adopts a stake': (arg) => {
      const ids = [...world.service.stakes().map(({ stakeId }) => stakeId), ...records.list().flatMap(({ spec }) => spec.apiId ?? [])]
      const stakeId = pick(ids, arg)
      // As the API server admits it: while status shows no stake.
      if (here() !== undefined && stakeId !== undefined) world.editSpec({ adopt: { stakeId } })
      return undefined
    },
    'it is suspended, or goes on': () => void (here() && world.editSpec({ suspend: here()?.spec.suspend !== true })),
    'its policy changes': (arg) =>
      void world.editPolicy(
        pick(
          [
            { maxPerTransaction: '1' },
            { maxPerTransaction: String(100n * AMOUNT) },
            { allowedNamespaces: { names: ['team-b'] } },
            { allowedNamespaces: { names: ['team-a'] } },
          ],
          arg,
        ) ?? {},
      ),
    'a signer is suspended, or goes on': (arg) => {
      const name = arg < 0.5 ? 'payer' : 'withdrawer'
      world.editSigner({ suspend: world.signers.get(name)?.spec.suspend !== true }, name)
      return undefined
    },
    'nodes lose what waits': () => void world.cluster.forget(),
    'nodes take and lose, or keep': () => {
      world.cluster.state.forgetful = !world.cluster.state.forgetful
      return undefined
    },
    'the second node is another': (arg) => {
      const { state } = world.cluster
      state.secondHides = arg > 0.5 && arg < 0.8
      state.secondAt = arg < 0.25 ? -1 : arg < 0.5 ? Math.max(0, world.cluster.height() - 40) : undefined
      return undefined
    },
    'what was signed expires': () => void world.cluster.expire(),
    'the last block is another': (arg) => void world.cluster.fork(arg < 0.5),
    'the staking API lies once': (arg) => {
      const { state } = world.service
      state.lie = (body) => {
        state.lie = undefined
        if (body.externalReference !== `SolanaStake/${KEY}`) return body
        return (
          pick(
            [
              { ...body, externalReference: `SolanaStake/${OTHER}` },
              { ...body, amountLamports: lamports(1n) },
              { ...body, transactions: [] },
              { ...body, protocol: { ...body.protocol, status: 'WITHDRAWN' as const } },
              { ...body, stakeAccount: others.stakeAccount ?? '' },
              { ...body, feePayer: testAddress(9) },
            ],
            arg,
          ) ?? body
        )
      }
      return undefined
    },
    'blocks pass': (arg) => void world.cluster.produce(1 + Math.floor(arg * 4)),
    'the next state is asked for': () => void next(),
  }
  const fatal = createFatal(fates, strikes)
  const operators: Operator[] = []
  operators.push(world.start(fatal.around), world.start(fatal.around))
  function thaw(): undefined {
    for (const { caches } of operators) for (const cache of [caches.stakes, caches.log, caches.signers]) if (cache.frozen) cache.thaw()
  }
  function next(): void {
    const stake = here()
    if (stake === undefined || stake.metadata.deletionTimestamp !== undefined) return
    const following = order[order.indexOf(stake.spec.desiredState) + 1]
    if (following !== undefined) world.editSpec({ desiredState: following })
  }
  /** What must hold at every moment: it went, so nothing of it is on the chain, unless a person said that it is to be forgotten. */
  function look(): void {
    const stake = here()
    if (stake !== undefined) {
      isHere = true
      if (stake.status !== undefined && earlier.at(-1) !== stake.status) earlier.push(stake.status)
      return
    }
    if (!isHere) return
    isHere = false
    if (wasConfirmed) forgotten++
    else {
      const { funded, withdrawn } = historyOf(world)
      const mine = funded.filter((account) => account !== others.stakeAccount)
      if (forgotten === 0 && mine.length > withdrawn.length) problems.push('it went, unconfirmed, while it held money')
    }
  }
  async function round(): Promise<void> {
    await Promise.all(
      operators.map(async (operator, index) => {
        for (let turn = 0; turn < index; turn++) await null
        // Records that were written by another life are the log's to look at, whoever has them.
        for (const { metadata } of operator.records(KEY)) await operator.visitRecord(metadata.name).catch(() => undefined)
        await operator.visit(KEY).catch(() => undefined)
        await operator.visit(OTHER).catch(() => undefined)
      }),
    )
    look()
    for (const [index, operator] of operators.entries()) if (operator.killed) operators[index] = world.start(fatal.around)
    world.cluster.produce(1)
    world.clock.advance(20_000)
    const { phase } = world.status()
    if (phase === 'Activating' || phase === 'Deactivating') world.cluster.nextEpoch()
    fatal.pass(10)
  }
  for (let count = 0; count < 60 && !fatal.isOver; count++) {
    await round()
    if (world.ready()) {
      fatal.pass(40)
      if (count % 4 === 3) next()
    }
  }

  // Calm: all that failed works again.
  const { cluster, service } = world
  const calm = (): void => {
    fatal.stop()
    thaw()
    cluster.state.forgetful = false
    cluster.state.secondAt = undefined
    cluster.state.secondHides = false
    service.state.lie = undefined
    for (const name of ['payer', 'withdrawer']) {
      world.editSigner({ suspend: false }, name)
      world.editPolicy({ maxPerTransaction: String(100n * AMOUNT), allowedNamespaces: { names: ['team-a'] } }, name)
    }
    if (here()?.spec.suspend === true) world.editSpec({ suspend: false })
  }
  const isHeld = () =>
    here()?.metadata.deletionTimestamp !== undefined && world.condition('Ready')?.message.includes('It goes once they are.')
  const standing = () =>
    here() === undefined
      ? 'gone'
      : isHeld()
        ? 'Held'
        : world.ready()
          ? `Ready ${world.status().phase}`
          : world.stalled() !== ''
            ? `Stalled ${world.stalled()}`
            : ''
  async function settled(): Promise<string> {
    let calmFor = 0
    let last = ''
    for (let count = 0; count < 40 && calmFor < 5; count++) {
      await round()
      cluster.settle()
      cluster.nextEpoch()
      if (count % 6 === 5) cluster.expire()
      world.clock.advance(300_000)
      const now = standing()
      calmFor = now !== '' && now === last ? calmFor + 1 : 0
      last = now
    }
    return calmFor >= 5
      ? last
      : `never settles: ${here()?.metadata.deletionTimestamp === undefined ? '' : 'deleted, '}${world.condition('Ready')?.reason}`
  }
  /** Does what a message asks a person to do. @returns in words; undefined: nothing that is known here */
  function asked(reason: string, message: string): string | undefined {
    if (/database was set back|has lost its data/.test(message) && !acted.includes('brought the data back')) {
      // Of the backups, one with what something was signed for, or was named.
      const paid = new Set([...signedFor(world), world.status().stakeAccount ?? ''])
      const holds = (set: () => void) => {
        set()
        return service.stakes().filter(({ stakeId, stakeAccount }) => paid.has(stakeAccount) || stakeId === named).length
      }
      const named = here()?.spec.adopt?.stakeId
      const best = [service.copy(), ...backups].map((set) => ({ set, count: holds(set) })).toSorted((a, b) => b.count - a.count)[0]
      best?.set()
      return 'brought the data back'
    }
    if (reason === 'AdoptionMismatch' && here()?.spec.adopt !== undefined) {
      const { adopt: _gone, ...spec } = here()?.spec ?? ({} as never)
      world.stakes.edit(KEY, (stake) => ({ ...stake, spec }))
      return 'took spec.adopt away'
    }
    if (/remove (these fields|status\.stakeId)/.test(message)) {
      world.editStatus(
        ({
          stakeId: _id,
          stakeAccount: _account,
          stakeAuthority: _stake,
          withdrawAuthority: _withdraw,
          voteAccount: _vote,
          verifiedStakeId: _verified,
          transactions: _all,
          ...rest
        }) => rest,
      )
      return 'took fields of status away'
    }
    if (reason === 'DelegationChanged') {
      next()
      return 'asked for the next state'
    }
    const [, stakeId] = /set spec\.adopt\.stakeId to (\w+)/.exec(message) ?? []
    if (stakeId !== undefined) {
      world.editSpec({ adopt: { stakeId } })
      return 'adopted'
    }
    if (/spec\.adopt, or take it away/.test(message)) {
      const { adopt: _gone, ...spec } = here()?.spec ?? ({} as never)
      world.stakes.edit(KEY, (stake) => ({ ...stake, spec }))
      return 'took spec.adopt away'
    }
    // The person has looked at the chain: nothing of this stake is there.
    if (
      /delete this resource and create it again/.test(message) &&
      !acted.includes('created it again') &&
      !historyOf(world).funded.includes(world.status().stakeAccount ?? '')
    ) {
      again = true
      world.stakes.remove(KEY)
      return 'created it again'
    }
    return undefined
  }
  let again = false
  const acted: string[] = []
  calm()
  let end = await settled()
  for (let acts = 0; acts < 6 && end.startsWith('Stalled'); acts++) {
    const act = asked(world.stalled(), world.condition('Stalled')?.message ?? '')
    if (act === undefined) break
    acted.push(act)
    end = await settled()
    if (again && end === 'gone') {
      again = false
      strikes['it is created anew'](0)
      end = await settled()
    }
  }
  const { message = '' } = world.condition('Ready') ?? {}
  judge(world, others, { end, forgotten, created, problems })
  return { log: [...fatal.log, ...acted.map((act) => `  and a person ${act}`)], end, message, problems }
}

/** By the cluster's history, and not by what the operator says of itself. */
function judge(
  world: SolanaWorld,
  others: SolanaStakeStatus,
  {
    end,
    forgotten,
    created,
    problems,
  }: { readonly end: string; readonly forgotten: number; readonly created: number; readonly problems: string[] },
): void {
  const { funded, withdrawn } = historyOf(world)
  const mine = funded.filter((account) => account !== others.stakeAccount)
  // A resource that was created anew is another wish, where what was paid for the one before came back, or a person said that it is to be forgotten.
  const came = withdrawn.filter(({ account }) => mine.includes(account)).length
  if (mine.length > 1 + Math.min(created - 1, forgotten + came)) problems.push(`paid ${mine.length} times: ${mine.join(', ')}`)
  try {
    world.assertMoney({ funded: funded.length, withdrawn: new Set(withdrawn.map(({ account }) => account)).size })
  } catch (error) {
    problems.push((error as Error).message)
  }
  if (withdrawn.some(({ account }) => account === others.stakeAccount)) problems.push("another's stake was withdrawn")
  const { phase, stakeAccount } = world.status()
  if (end.startsWith('Ready')) {
    if (phase === 'Active' && !mine.includes(stakeAccount ?? '')) problems.push(`Ready, and nothing was paid into ${stakeAccount}`)
    if (phase === 'Withdrawn' && mine.length > 0 && !mine.some((account) => withdrawn.some((one) => one.account === account)))
      problems.push('Ready and Withdrawn, and the money is still staked')
  }
  const saysNothing = world.condition('Ready')?.reason === 'NothingStaked'
  if (
    saysNothing &&
    end.startsWith('Ready') &&
    mine.some((account) => !withdrawn.some((one) => one.account === account)) &&
    forgotten === 0
  )
    problems.push('Ready, as nothing was ever staked, and money is')
  if (end.startsWith('never settles')) problems.push(end)
  const condition = findCondition(world.status().conditions, 'Ready')
  if (end.startsWith('Stalled')) problems.push(`needs a person still: ${end}`)
  if (end.startsWith('Stalled') && (condition?.message ?? '') === '') problems.push('Stalled without a word')
  if (!world.ready(OTHER)) problems.push(`the other is not ready any more: ${world.condition('Ready', OTHER)?.message}`)
}
