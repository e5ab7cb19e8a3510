import { setTimeout as sleep } from 'node:timers/promises'
import { html, latency, reset, resetAfterPassing, timeout, tooManyRequests } from '../../chains/faults.ts'
import type { FaultyProxy, Fault as HttpFault, Match } from '../../chains/faulty-http.ts'
import { nodeSays } from '../../chains/faulty-rpc.ts'
import { signalTree } from '../../cluster/signal-tree.ts'
import { dropLease } from '../../crash/exactly-once.ts'
import { type Fault, type FaultKind, ofLink } from '../faults.ts'
import type { Users } from './users.ts'
import type { Fleet, Kept } from './world.ts'
import { hidesLogs, hidesReceipts, keepsToItself, orphanedReceipts, otherChain, poolAsFinal, standingStill } from './wrong-node.ts'

const GWEI = 1_000_000_000n

/** Ends a program and keeps it down meanwhile. */
async function down(kept: Kept, during: () => Promise<unknown>): Promise<void> {
  kept.isHeld = true
  await kept.program.kill()
  try {
    await during()
  } finally {
    kept.isHeld = false
  }
  // Whoever looks after it may be quicker; a start that fails is tried again by that one.
  await kept.program.start().catch(() => undefined)
}

const ofProgram = (kept: Kept): readonly Fault[] => [
  { name: `${kept.name}: killed`, run: (ms) => down(kept, () => sleep(ms / 2)) },
  {
    name: `${kept.name}: told to end`,
    run: async () => {
      kept.isHeld = true
      await kept.program.stop()
      kept.isHeld = false
      await kept.program.start().catch(() => undefined)
    },
  },
  {
    name: `${kept.name}: frozen`,
    run: async (ms) => {
      const { kill } = kept.program.process()
      kill('SIGSTOP')
      await sleep(ms)
      kill('SIGCONT')
    },
  },
]

/** Longer than the lease: another leads when it wakes. */
const BEYOND_LEASE_MS = 7_000
const frozenForLong = (kept: Kept): Fault => ({
  name: `${kept.name}: frozen for longer than a lease`,
  run: async (ms) => {
    const { kill } = kept.program.process()
    kill('SIGSTOP')
    await sleep(Math.max(ms, BEYOND_LEASE_MS))
    kill('SIGCONT')
  },
})

const jumps = [-3_600_000, -30_000, 20_000, 600_000, 7_200_000]
const clockOf = (kept: Kept): readonly Fault[] =>
  jumps.map((jump) => ({
    name: `${kept.name}: its clock jumps by ${jump / 1_000} s`,
    run: async (ms) => {
      kept.clock.set(jump)
      await sleep(ms)
      kept.clock.set(0)
    },
  }))

/** For a while, a proxy answers so. */
const answers = (what: string, proxy: FaultyProxy, match: Match, fault: HttpFault | (() => Promise<HttpFault>)): Fault => ({
  name: what,
  run: async (ms) => {
    const active = proxy.when(match).always(typeof fault === 'function' ? await fault() : fault)
    await sleep(ms)
    active.remove()
  },
})

const everything = /./
const ofHttp = (what: string, proxy: FaultyProxy): readonly Fault[] => [
  answers(`${what}: late`, proxy, everything, latency(700)),
  answers(`${what}: cut`, proxy, everything, reset),
  answers(`${what}: no answer`, proxy, everything, timeout),
  answers(`${what}: does the work, and its answer is lost`, proxy, everything, resetAfterPassing),
  answers(`${what}: too many requests`, proxy, everything, tooManyRequests(1)),
  answers(`${what}: a gateway's page`, proxy, everything, html(502)),
]

/** Everything that is done, by kind; one of each kind in a round. */
export function faultKinds(fleet: Fleet, users: Users): readonly FaultKind[] {
  const { operators, service, cluster, anvil, beacon, solana, solanaNodes, nodes, links, stakingApi, beaconNode, database } = fleet
  const stoppedOperators = async (during: () => Promise<unknown>): Promise<void> => down(operators[0], () => down(operators[1], during))
  return [
    operators.flatMap(ofProgram),
    operators.map(frozenForLong),
    operators.flatMap(clockOf),
    [{ name: 'both operators: killed', run: (ms) => stoppedOperators(() => sleep(ms / 2)) }],
    [
      {
        name: 'the lease is taken away from who leads, again and again',
        run: async (ms) => {
          for (const until = performance.now() + ms; performance.now() < until; await sleep(600))
            await dropLease(cluster).catch(() => undefined)
        },
      },
    ],
    ofProgram(service),
    clockOf(service),
    [
      {
        name: 'PostgreSQL: killed',
        run: async (ms) => {
          await database.server.kill()
          await sleep(ms / 2)
          await database.server.restart()
        },
      },
      {
        name: 'PostgreSQL: frozen',
        run: async (ms) => {
          signalTree(database.server.pid(), 'SIGSTOP')
          await sleep(ms)
          signalTree(database.server.pid(), 'SIGCONT')
        },
      },
    ],
    ofLink('network of the database', links.toDatabase),
    ofHttp('staking API', stakingApi),
    [
      {
        name: 'kube-apiserver: killed',
        run: async (ms) => {
          await cluster.stopApiServer()
          await sleep(ms / 2)
          await cluster.startApiServer()
        },
      },
      ...(['apiServer', 'etcd'] as const).map((part) => ({
        name: `${part}: frozen`,
        run: async (ms: number) => {
          process.kill(cluster.pids()[part], 'SIGSTOP')
          await sleep(ms)
          process.kill(cluster.pids()[part], 'SIGCONT')
        },
      })),
    ],
    links.toApiServer.flatMap((link, index) => ofLink(`network of ${operators[index]?.name ?? ''} to kube-apiserver`, link)),
    nodes.flatMap((node, index) => ofHttp(`node ${index}`, node)),
    nodes.flatMap((node, index) => {
      const what = `node ${index}`
      return [
        answers(`${what}: stands still`, node, everything, async () => standingStill(await anvil.blockNumber())),
        answers(`${what}: answers for final blocks as for its pool`, node, everything, poolAsFinal),
        answers(`${what}: hides receipts`, node, everything, hidesReceipts),
        answers(`${what}: hides logs`, node, everything, hidesLogs),
        answers(`${what}: receipts of blocks that are in no chain`, node, everything, orphanedReceipts),
        answers(`${what}: says that it is of another chain`, node, everything, otherChain),
        answers(`${what}: keeps transactions to itself`, node, 'eth_sendRawTransaction', keepsToItself),
        answers(`${what}: takes transactions, and says that it did not`, node, 'eth_sendRawTransaction', {
          ...nodeSays.underpriced,
          afterPassing: true,
        } as HttpFault),
        answers(`${what}: says that a nonce is used`, node, 'eth_sendRawTransaction', nodeSays.nonceTooLow),
      ]
    }),
    [
      {
        name: 'chain: frozen',
        run: async (ms) => {
          process.kill(anvil.pid(), 'SIGSTOP')
          await sleep(ms)
          process.kill(anvil.pid(), 'SIGCONT')
        },
      },
      {
        name: 'chain: killed, and all pools are lost',
        run: async (ms) => {
          await anvil.crash()
          await sleep(ms / 2)
          await anvil.restart()
        },
      },
      {
        name: 'chain: the last block is replaced by another',
        run: async (ms) => {
          for (const until = performance.now() + ms; performance.now() < until; await sleep(1_500))
            await anvil.reorg(1).catch(() => undefined)
        },
      },
      {
        name: 'chain: gas is dear',
        run: async (ms) => {
          await anvil.setNextBlockBaseFee(40n * GWEI)
          await sleep(2 * ms)
          await anvil.setNextBlockBaseFee(7n)
        },
      },
    ],
    [
      ...ofHttp('beacon node', beaconNode),
      {
        name: 'beacon node: behind',
        run: async (ms) => {
          beacon.setBehind(12)
          await sleep(ms)
          beacon.setBehind(0)
        },
      },
      {
        name: 'beacon chain: no finality',
        run: async (ms) => {
          beacon.setFinality(false)
          await sleep(ms)
          beacon.setFinality(true)
        },
      },
    ],
    solanaNodes.flatMap((node, index): readonly Fault[] => {
      const what = `Solana node ${index}`
      const meanwhile = (name: string, begin: () => void, end: () => void): Fault => ({
        name: `${what}: ${name}`,
        run: async (ms) => {
          begin()
          await sleep(ms)
          end()
        },
      })
      return [
        meanwhile(
          'behind',
          () => node.lag(30),
          () => node.lag(0),
        ),
        meanwhile(
          'unhealthy',
          () => node.unhealthy(200),
          () => node.unhealthy(undefined),
        ),
        meanwhile(
          'of another cluster',
          () => node.claimGenesis('11111111111111111111111111111111'),
          () => node.claimGenesis(undefined),
        ),
        meanwhile(
          'answers late',
          () => node.answerLate('sendTransaction', 6_000),
          () => node.answerLate('sendTransaction', 0),
        ),
        meanwhile(
          'loses what it is sent',
          () => node.fate({ kind: 'drop' }, 6),
          () => undefined,
        ),
        meanwhile(
          'passes on late',
          () => node.fate({ kind: 'late', blocks: 40 }, 6),
          () => undefined,
        ),
      ]
    }),
    [
      {
        name: 'Solana: rewards are paid',
        run: async (ms) => {
          solana.setEpochRewards(true)
          await sleep(ms)
          solana.setEpochRewards(false)
        },
      },
    ],
    [
      {
        name: 'etcd: set back',
        run: async (ms) => {
          await cluster.backUpEtcd()
          await sleep(2 * ms)
          await stoppedOperators(async () => {
            await cluster.restoreEtcd()
            await users.forgotten()
          })
          await users.applyAll()
        },
      },
      {
        name: "the service's database: set back",
        run: async (ms) => {
          await database.backUp()
          await sleep(2 * ms)
          await down(service, () => database.restore())
        },
      },
    ],
  ]
}
