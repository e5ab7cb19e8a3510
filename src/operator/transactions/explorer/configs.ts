import { type Config, type Faults, faultNames } from './config.ts'

const one = { wants: [0, -1, -1] } as const
const two = { wants: [0, 1, -1] } as const
const heir = { wants: [0, -1, 0] } as const
const base = { lanes: 1, nonces: 3, leaders: 1, ...one } as const satisfies Partial<Config>

/** One kind of fault each. */
export const configs: readonly Config[] = [
  { ...base, ...two, id: '01', title: 'one leader, no faults' },
  { ...base, ...two, id: '02', title: 'two leaders, late caches, a crash', leaders: 2, crash: 1 },
  { ...base, ...two, id: '03', title: 'one leader, a crash, the owner suspended or deleted', owner: 2, crash: 1 },
  { ...base, id: '04', title: 'two leaders, a crash, the owner suspended or deleted', leaders: 2, owner: 2, crash: 1 },
  { ...base, ...two, id: '05', title: 'a bump, a reorg, a forgetful pool, a suspended owner', bump: 1, reorg: 1, drop: 1, owner: 1 },
  {
    ...base,
    id: '06',
    title: 'two leaders, nodes that lag, are down or lie, a reorg',
    leaders: 2,
    node: 2,
    nodeModes: ['lag', 'down', 'lie'],
    reorg: 1,
    owner: 1,
    mayWait: true,
  },
  { ...base, id: '07', title: 'a node on another fork', node: 1, nodeModes: ['fork'], owner: 1, bump: 1 },
  { ...base, id: '08', title: 'etcd set back, a bump', setBack: 1, bump: 1, mayWait: true },
  { ...base, ...two, id: '09', title: 'etcd set back, the owner suspended or deleted', setBack: 1, owner: 1, mayWait: true },
  { ...base, id: '10', title: 'two leaders, etcd set back', setBack: 1, leaders: 2, mayWait: true },
  { ...base, id: '11', title: 'etcd set back, a shared key', setBack: 1, foreign: 1, shared: true, mayWait: true },
  {
    ...base,
    id: '11b',
    title: 'etcd set back, the staking API takes hashes only after they were sent, a crash',
    setBack: 1,
    crash: 1,
    toldAfter: true,
    shared: true,
    mayWait: true,
  },
  {
    ...base,
    ...heir,
    id: '11c',
    title: 'as 11b, and the owner is deleted and followed by another',
    setBack: 1,
    crash: 1,
    owner: 2,
    toldAfter: true,
    mayWait: true,
  },
  {
    ...base,
    id: '11d',
    title: 'as 11b, and a node lies about its counts',
    setBack: 1,
    crash: 1,
    node: 1,
    nodeModes: ['lie'],
    toldAfter: true,
    shared: true,
    mayWait: true,
  },
  {
    ...base,
    id: '11f',
    title: 'as 11b, two leaders',
    leaders: 2,
    setBack: 1,
    crash: 1,
    toldAfter: true,
    shared: true,
    mayWait: true,
  },
  {
    ...base,
    ...two,
    id: '11e',
    title: 'etcd set back, a shared key, the staking API takes hashes only after they were sent',
    setBack: 1,
    toldAfter: true,
    shared: true,
    mayWait: true,
  },
  { ...base, id: '13', title: 'two leaders, a shared key', leaders: 2, foreign: 1, shared: true },
  { ...base, id: '14', title: "an empty lane, another user's transaction is forgotten, a shared key", foreign: 1, drop: 2, shared: true },
  { ...base, id: '14b', title: "an empty lane, another user's transaction is forgotten", foreign: 1, drop: 2, mayWait: true },
  { ...base, id: '14c', title: "another user's transaction, acknowledged by a person", foreign: 2, drop: 1, acknowledge: 2, mayWait: true },
  {
    ...base,
    ...heir,
    id: '15',
    title: 'two leaders, the owner is deleted, another wants the same by another lane',
    lanes: 2,
    laneOf: [0, 0, 1],
    leaders: 2,
    owner: 2,
  },
  { ...base, ...two, id: '17', title: 'two leaders, places are pruned', leaders: 2, prune: 1 },
  { ...base, id: '18', title: 'two leaders, places and records are pruned', leaders: 2, prune: 1, pruneRecord: 1, mayWait: true },
  {
    ...base,
    ...heir,
    id: '18c',
    title: 'the owner is deleted and another comes, places and records are pruned',
    owner: 2,
    prune: 1,
    pruneRecord: 1,
    // The staking API was told of what came to nothing, and the record that knew is gone.
    mayWait: true,
  },
  { ...base, ...two, id: '19', title: 'a place is deleted by hand', handDelete: 1 },
  { ...base, id: '20', title: 'two leaders, a place is deleted by hand', handDelete: 1, leaders: 2, owner: 1 },
  { ...base, id: '17b', title: 'two leaders, a bump, places are pruned', leaders: 2, prune: 1, bump: 1 },
  { ...base, id: '22', title: 'two leaders, the signer gets another key', lanes: 2, rotates: true, owner: 2, leaders: 2, mayWait: true },
  { ...base, ...two, id: '23', title: "the first owner's cap is below the market", lowCap: true, owner: 1 },
  {
    ...base,
    id: '24',
    title: 'two leaders, two resources want one thing by two lanes',
    wants: [0, 0, -1],
    lanes: 2,
    laneOf: [0, 1, 0],
    leaders: 2,
    owner: 1,
    crash: 1,
  },
  { ...base, ...two, id: '25', title: 'etcd set back, forgetful pools', setBack: 1, drop: 2, mayWait: true },
  {
    ...base,
    id: '25b',
    title: 'two leaders, etcd set back, forgetful pools, a suspended owner',
    setBack: 1,
    drop: 2,
    leaders: 2,
    owner: 1,
    mayWait: true,
  },
  { ...base, ...two, id: '26', title: 'a call reverts and may be made again', revert: 1, remakeAfterRevert: true },
  { ...base, id: '27', title: 'leaders see late that the owner is suspended', leaders: 2, owner: 2, lateOwners: true },
  { ...base, ...two, id: '28', title: 'the ledger of an earlier version, a crash', crash: 1, ledger: true },
  { ...base, ...two, id: '28b', title: 'the ledger of an earlier version, etcd set back', setBack: 1, ledger: true, mayWait: true },
  {
    ...base,
    ...two,
    id: '28c',
    title: 'the ledger of an earlier version, a reorg, a forgetful pool, a suspended owner',
    reorg: 1,
    drop: 1,
    owner: 1,
    ledger: true,
  },
  {
    ...base,
    wants: [0, 1, 0],
    id: '28d',
    title: 'the ledger of an earlier version, whose owner is deleted and followed by another',
    owner: 2,
    ledger: true,
    mayWait: true,
  },
]

/** Explored whole by `npm test`, and too slow for `npm run check`. */
export const slow: readonly Config[] = [
  { ...base, ...two, id: '28f', title: 'two leaders, the ledger of an earlier version, a crash', leaders: 2, crash: 1, ledger: true },
  {
    ...base,
    wants: [0, 1, 0],
    id: '28e',
    title: 'as 28d, and etcd is set back, a pool is forgetful, a leader crashes',
    owner: 2,
    setBack: 1,
    drop: 1,
    crash: 1,
    ledger: true,
    mayWait: true,
  },
  {
    ...base,
    id: '18b',
    title: 'two leaders, records are pruned, a node on another fork, hashes are taken only after they were sent',
    leaders: 2,
    pruneRecord: 1,
    node: 1,
    nodeModes: ['fork'],
    toldAfter: true,
    mayWait: true,
  },
]

/** Too large for the tests. */
export const large: readonly Config[] = [
  { ...base, ...two, id: '17c', title: 'as 17b, two purposes', leaders: 2, prune: 1, bump: 1 },
  { ...base, ...two, id: '10b', title: 'two leaders, etcd set back, two purposes', leaders: 2, setBack: 1, mayWait: true },
]

/** The same world with one more of each of its faults and one more number. */
export function enlarged(config: Config): Config {
  const faults: { -readonly [Name in keyof Faults]: Faults[Name] } = {}
  for (const name of faultNames) if (config[name] !== undefined) faults[name] = Math.min(3, config[name] + 1)
  // A second etcd restore, and more than two remakes, are a person's business.
  if (config.setBack !== undefined) faults.setBack = config.setBack
  return { ...config, ...faults, id: `${config.id}+`, nonces: Math.min(4, config.nonces + 1), mayWait: true }
}

/** Everything at once: for random walks. */
export const together: Config = {
  id: 'all',
  title: 'all faults together',
  lanes: 2,
  laneOf: [0, 0, 1],
  nonces: 4,
  leaders: 2,
  wants: [0, 1, 0],
  crash: 2,
  setBack: 1,
  foreign: 1,
  drop: 2,
  owner: 3,
  reorg: 2,
  node: 3,
  nodeModes: ['lag', 'down', 'lie', 'fork'],
  prune: 2,
  handDelete: 1,
  pruneRecord: 1,
  bump: 2,
  acknowledge: 1,
  revert: 1,
  remakeAfterRevert: true,
  lateOwners: true,
  mayWait: true,
}
