import { signalTree } from '../cluster/signal-tree.ts'
import type { FaultyLink, Toxic } from '../cluster/toxiproxy.ts'

/** What the faults are done to. */
export interface Targets {
  /** Each instance of the service, as a process that can be ended and started again. */
  readonly instances: readonly Instance[]
  /** Between the clients and each instance. */
  readonly toInstances: readonly FaultyLink[]
  /** Absent where the database is embedded: it fails with its instance. */
  readonly database?: {
    readonly server: { pid(): number; kill(): Promise<void>; restart(): Promise<void> }
    /** Between the service and its database. */
    readonly link: FaultyLink
  }
}
export interface Instance {
  readonly name: string
  kill(signal: NodeJS.Signals): void
  /** Ends it by a signal, and waits until it has ended. */
  end(signal: NodeJS.Signals): Promise<void>
  start(): Promise<void>
}

export interface Fault {
  readonly name: string
  /** Does it for `ms`, and puts everything right again. */
  run(ms: number): Promise<void>
}
/** Faults of one kind, any of which may be done. */
export type FaultKind = readonly Fault[]

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms))

const toxics: readonly Toxic[] = [
  { type: 'latency', attributes: { latency: 400, jitter: 300 } },
  { type: 'reset_peer', attributes: { timeout: 200 } },
  { type: 'timeout', attributes: { timeout: 500 } },
  { type: 'timeout', attributes: { timeout: 500 }, stream: 'upstream' },
  // No byte comes, and nobody is told: a cable that was pulled.
  { type: 'timeout', attributes: { timeout: 0 } },
  { type: 'timeout', attributes: { timeout: 0 }, stream: 'upstream' },
  { type: 'limit_data', attributes: { bytes: 1_500 } },
  { type: 'slicer', attributes: { average_size: 40, size_variation: 20, delay: 2_000 } },
  { type: 'bandwidth', attributes: { rate: 8 } },
  { type: 'slow_close', attributes: { delay: 1_000 } },
]

export const ofLink = (what: string, link: FaultyLink): Fault[] => [
  ...toxics.map(
    (toxic): Fault => ({
      name: `${what}: ${toxic.type}${toxic.attributes.timeout === 0 ? ' without end' : ''} ${toxic.stream ?? 'downstream'}`,
      run: async (ms) => {
        await link.add(toxic)
        await sleep(ms)
        await link.clear()
      },
    }),
  ),
  {
    name: `${what}: cut`,
    run: async (ms) => {
      await link.setEnabled(false)
      await sleep(ms)
      await link.clear()
    },
  },
]

const frozen = (instance: Instance, name: string, atLeastMs: number): Fault => ({
  name: `${instance.name}: ${name}`,
  run: async (ms) => {
    instance.kill('SIGSTOP')
    await sleep(Math.max(ms, atLeastMs))
    instance.kill('SIGCONT')
  },
})

/** Everything that is done, one at a time, by kind. */
export function faultKinds({ instances, toInstances, database }: Targets): readonly FaultKind[] {
  const ofService: FaultKind[] = [
    instances.map((instance) => ({
      name: `${instance.name}: killed`,
      run: async (ms) => {
        await instance.end('SIGKILL')
        await sleep(ms / 2)
        await instance.start()
      },
    })),
    instances.map((instance) => ({
      name: `${instance.name}: ended and started again`,
      run: async () => {
        await instance.end('SIGTERM')
        await instance.start()
      },
    })),
    instances.map((instance) => frozen(instance, 'frozen', 0)),
    toInstances.flatMap((link, index) => ofLink(`network of ${instances[index]?.name}`, link)),
  ]
  if (database === undefined) return ofService
  const { server, link } = database
  return [
    ...ofService,
    ofLink('network of the database', link),
    [
      {
        name: 'PostgreSQL: killed',
        run: async (ms) => {
          await server.kill()
          await sleep(ms / 2)
          await server.restart()
        },
      },
    ],
    [
      {
        name: 'PostgreSQL: frozen',
        run: async (ms) => {
          signalTree(server.pid(), 'SIGSTOP')
          await sleep(ms)
          signalTree(server.pid(), 'SIGCONT')
        },
      },
    ],
  ]
}

/** The lease of an Idempotency-Key is 30 s: others have done the work when this one wakes. */
const beyondLeaseMs = 33_000

/** What takes too long for every round. */
export const longFaults = ({ instances }: Targets): FaultKind =>
  instances.map((instance) => frozen(instance, 'frozen for longer than a lease', beyondLeaseMs))
