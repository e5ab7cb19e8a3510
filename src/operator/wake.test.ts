import { expect, test } from 'vitest'
import type { Condition } from '../resources/conditions.ts'
import { type EthereumStake, ethereumStake } from '../resources/ethereum-stake.ts'
import { RECONCILE_ANNOTATION, RECORD_FINALIZER } from '../resources/meta.ts'
import { solanaStake } from '../resources/solana-stake.ts'
import { stakingSigner } from '../resources/staking-signer.ts'
import { stakingTransaction } from '../resources/staking-transaction.ts'
import { type ValidatorExit, validatorExit } from '../resources/validator-exit.ts'
import { type ValidatorWithdrawal, validatorWithdrawal } from '../resources/validator-withdrawal.ts'
import { type Caches, createCaches } from './caches.ts'
import type { KubeObject } from './kube/objects.ts'
import { Priority, type Queue } from './kube/queue.ts'
import { createFakeKube } from './testing/fake-kube.ts'
import { createTestClock } from './testing/test-clock.ts'
import type { RecordObject } from './transactions/store.ts'
import { wireWakes } from './wake.ts'

const pubkey = `0x${'ab'.repeat(48)}`
const validator = { network: 'hoodi', pubkey }
const condition = (type: string, status: string): Condition =>
  ({ type, status, reason: 'Said', message: '', lastTransitionTime: '2030-01-01T00:00:00Z', observedGeneration: 1 }) as Condition

/** One resource of each kind, all of signer-1 and of one validator, and what their changes wake. */
function wired() {
  const kube = createFakeKube(createTestClock())
  const caches = createCaches(kube.follow)
  let woken: string[] = []
  const queueOf = (name: string) => {
    const add = (key: string, options: { priority?: number } = {}) =>
      void woken.push(`${name} ${key}${options.priority === Priority.high ? '' : ', low'}`)
    return { add, addAfter: (key, _ms, options) => add(key, options) } as Queue<string>
  }
  const queues = Object.fromEntries(Object.keys(caches).map((name) => [name, queueOf(name)])) as Record<keyof Caches, Queue<string>>
  const wakes = wireWakes(caches, queues)
  const stakes = kube.collection<EthereumStake & KubeObject>(ethereumStake)
  const exits = kube.collection<ValidatorExit & KubeObject>(validatorExit)
  const withdrawals = kube.collection<ValidatorWithdrawal & KubeObject>(validatorWithdrawal)
  const signers = kube.collection<KubeObject>(stakingSigner)
  const solanaStakes = kube.collection<KubeObject>(solanaStake)
  const records = kube.collection<KubeObject>(stakingTransaction)
  const metadata = (name: string) => ({ name, namespace: 'team-a' })
  stakes.create({ metadata: metadata('stake'), spec: { network: 'hoodi', signer: 'signer-1' }, status: { depositData: { pubkey } } })
  exits.create({ metadata: metadata('exit'), spec: { validator, signer: 'signer-1' } })
  withdrawals.create({ metadata: metadata('withdrawal'), spec: { validator: { stakeRef: { name: 'stake' } }, signer: 'signer-1' } })
  solanaStakes.create({
    metadata: metadata('solana'),
    spec: { stakeAuthority: { signer: 'signer-1' }, withdrawAuthority: { signer: 'signer-1' } },
  })
  signers.create({ metadata: { name: 'signer-1' }, spec: { chain: 'Ethereum' }, status: { conditions: [condition('Ready', 'True')] } })
  const edit = <T>(collection: { edit(key: string, change: (object: T) => unknown): unknown }, key: string, change: object): void => {
    collection.edit(key, (object) => ({ ...object, ...change }))
  }
  const wokenBy = (act: () => void): string[] => {
    act()
    return woken.splice(0).toSorted()
  }
  woken = []
  return { caches, wakes, stakes, exits, withdrawals, signers, records, edit, wokenBy }
}
type Wired = ReturnType<typeof wired>

const everySaga = ['exits team-a/exit', 'solanaStakes team-a/solana', 'stakes team-a/stake', 'withdrawals team-a/withdrawal']
const everything = [...everySaga, 'signers signer-1, low'].toSorted()
const confirmed = { transaction: { state: 'Confirmed' } }

test.each<{ what: string; does: (world: Wired) => void; wakes: readonly string[] }>([
  {
    what: 'a stake whose spec is edited',
    does: ({ stakes, edit }) => edit(stakes, 'team-a/stake', { spec: { network: 'hoodi', signer: 'signer-1', suspend: true } }),
    wakes: ['stakes team-a/stake'],
  },
  {
    what: 'a stake whose transaction is final',
    does: ({ stakes, edit }) => edit(stakes, 'team-a/stake', { status: { depositData: { pubkey }, ...confirmed } }),
    // Only a request that names it waits for it.
    wakes: ['stakes team-a/stake, low', 'withdrawals team-a/withdrawal'],
  },
  {
    what: 'a label or an annotation that nobody reads, put on a stake,',
    does: ({ stakes }) =>
      void stakes.edit('team-a/stake', ({ metadata, ...stake }) => ({
        ...stake,
        metadata: { ...metadata, labels: { poked: '1' }, annotations: { poked: '1' } },
      })),
    wakes: [],
  },
  {
    what: 'a stake that is asked to be looked at',
    does: ({ stakes }) =>
      void stakes.edit('team-a/stake', ({ metadata, ...stake }) => ({
        ...stake,
        metadata: { ...metadata, annotations: { [RECONCILE_ANNOTATION]: '1' } },
      })),
    wakes: ['stakes team-a/stake'],
  },
  {
    what: 'an own write to a stake',
    does: ({ caches, stakes }) => {
      const stake = stakes.get('team-a/stake')
      if (stake !== undefined) caches.stakes.cache.put({ ...stake, metadata: { ...stake.metadata, resourceVersion: '999999' } })
    },
    wakes: [],
  },
  {
    what: 'an exit that is suspended',
    does: ({ exits, edit }) => edit(exits, 'team-a/exit', { spec: { validator, signer: 'signer-1', suspend: true } }),
    wakes: ['exits team-a/exit', 'withdrawals team-a/withdrawal'],
  },
  {
    what: 'an exit that is gone',
    does: ({ exits }) => exits.remove('team-a/exit'),
    wakes: ['exits team-a/exit', 'withdrawals team-a/withdrawal'],
  },
  {
    what: 'an exit that was accepted',
    does: ({ exits, edit }) =>
      edit(exits, 'team-a/exit', { status: { validator, transaction: { state: 'Confirmed' }, consensus: { status: 'Accepted' } } }),
    wakes: ['exits team-a/exit, low', 'stakes team-a/stake', 'withdrawals team-a/withdrawal'],
  },
  {
    what: 'a signer whose policy is edited',
    does: ({ signers, edit }) => edit(signers, 'signer-1', { spec: { chain: 'Ethereum', policy: {} } }),
    wakes: everything,
  },
  {
    what: 'a signer that is not ready any more',
    does: ({ signers, edit }) => edit(signers, 'signer-1', { status: { conditions: [condition('Ready', 'False')] } }),
    wakes: everything,
  },
  {
    what: "a signer's ledger",
    does: ({ signers, edit }) => edit(signers, 'signer-1', { status: { conditions: [condition('Ready', 'True')], ledgers: [] } }),
    wakes: ['signers signer-1, low'],
  },
  { what: 'a namespace', does: ({ wakes }) => wakes.namespace('team-a'), wakes: everySaga },
  { what: 'another namespace', does: ({ wakes }) => wakes.namespace('team-b'), wakes: [] },
  {
    what: 'a change of networks, keys or CRDs',
    does: ({ wakes }) => wakes.all(),
    wakes: everything,
  },
])('$what wakes $wakes', ({ does, wakes }) => {
  const world = wired()
  expect(world.wokenBy(() => does(world))).toEqual(wakes)
})

test('a stake whose transaction is final is not woken by its signer or its namespace', () => {
  const world = wired()
  world.edit(world.stakes, 'team-a/stake', { status: { depositData: { pubkey }, ...confirmed } })
  world.wokenBy(() => {})
  const woken = world.wokenBy(() => {
    world.wakes.namespace('team-a')
    world.edit(world.signers, 'signer-1', { spec: { chain: 'Ethereum', policy: {} } })
  })
  expect(woken.filter((one) => one.startsWith('stakes'))).toEqual([])
})

test('a record that was made here is news to its lane and its signer, not to the resource that has made it', () => {
  const world = wired()
  const address = '0x52908400098527886e0f7030069857d2e4169ee7'
  const made = {
    apiVersion: 'staking.dev/v1alpha1',
    kind: 'StakingTransaction',
    metadata: { name: 'deposit', uid: 'uid-deposit', resourceVersion: '9000' },
    spec: {
      chainId: 1,
      from: address,
      signer: 'signer-1',
      subject: pubkey,
      owner: { kind: 'EthereumStake', namespace: 'team-a', name: 'stake' },
    },
  } as unknown as RecordObject
  expect(world.wokenBy(() => world.caches.records.cache.put(made))).toEqual([`records 1/${address}`, 'signers signer-1, low'])
  const sent = { ...made, metadata: { ...made.metadata, resourceVersion: '9001' }, status: { place: 0 } } as unknown as RecordObject
  expect(world.wokenBy(() => world.caches.records.cache.put(sent))).toEqual(['stakes team-a/stake'])
})

test('the last resource of a record that somebody deletes wakes its lane as it goes', () => {
  const world = wired()
  const address = '0x52908400098527886e0f7030069857d2e4169ee7'
  const record = (name: string, owner: string, deletionTimestamp?: string) =>
    world.records.create({
      metadata: { name, finalizers: [RECORD_FINALIZER], ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
      spec: { chainId: 1, from: address, signer: 'signer-1', subject: pubkey, owner: { kind: owner, namespace: 'team-a', name: 'exit' } },
    })
  record('kept', 'ValidatorWithdrawal', '2030-01-01T00:00:00Z')
  record('held', 'ValidatorExit', '2030-01-01T00:00:00Z')
  world.wokenBy(() => {})
  expect(world.wokenBy(() => world.exits.remove('team-a/exit'))).toContain(`records 1/${address}`)
  expect(world.wokenBy(() => world.withdrawals.remove('team-a/withdrawal'))).not.toContain(`records 1/${address}`)
})
