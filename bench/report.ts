import type { FleetResult } from './fleet.ts'
import type { HistoryResult } from './history.ts'
import type { RequestsResult } from './requests.ts'
import type { RuntimeResult } from './runtime.ts'
import type { ServiceResult } from './service.ts'
import type { StakesResult } from './stakes.ts'
import type { TrackerResult } from './tracker.ts'
import type { ValidatorSetResult } from './validator-set.ts'

export interface Report {
  readonly machine: { readonly node: string; readonly cpu: string; readonly cores: number; readonly load1: number; readonly at: string }
  stakes?: readonly StakesResult[]
  runtime?: RuntimeResult
  fleet?: FleetResult
  history?: HistoryResult
  tracker?: TrackerResult
  requests?: RequestsResult
  validatorSet?: ValidatorSetResult
  late?: { readonly blockMs: number; readonly finality: number; readonly result: StakesResult }
  service?: readonly ServiceResult[]
}

interface Row {
  readonly what: string
  readonly value: string
  /** Whether the aim is met, where there is one. */
  readonly aim?: { readonly text: string; readonly met: boolean }
}

const number = (value: number, digits = 1): string => value.toFixed(digits)
const megabytes = (bytes: number): string => `${number(bytes / 1024 / 1024, 0)} MiB`

const atMost = (value: number, limit: number, text: string) => ({ text, met: value <= limit })

const stakesRows = (result: StakesResult): readonly Row[] => [
  { what: 'stakes a second, created to Confirmed', value: number(result.stakesPerSecond) },
  { what: 'operator CPU a stake', value: `${number(result.operatorCpuMsPerStake)} ms` },
  { what: 'API server requests a stake', value: number(result.requestsPerStakeTotal, 2) },
  ...Object.entries(result.requestsPerStake).map(([what, value]) => ({ what: `  ${what}`, value: number(value, 2) })),
  {
    what: 'status writes a stake',
    value: number(result.statusWritesPerStake, 2),
    aim: atMost(result.statusWritesPerStake, 8, 'at most 8'),
  },
  {
    what: 'status writes of the signer a stake',
    value: number(result.signerWritesPerStake, 2),
    aim: atMost(result.signerWritesPerStake, 1, 'at most 1'),
  },
  { what: 'JSON-RPC calls a stake', value: number(result.rpcCallsPerStake, 2) },
  { what: 'staking API calls a stake', value: number(result.apiCallsPerStake, 2) },
]

const runtimeRows = (result: RuntimeResult): readonly Row[] => [
  { what: 'writes a second, runtime', value: number(result.writesPerSecondRuntime, 0) },
  { what: 'writes a second, bare pool', value: number(result.writesPerSecondBare, 0) },
  {
    what: 'runtime beside bare pool, median',
    value: number(result.ratio, 3),
    aim: { text: 'at least 0.9', met: result.ratio >= 0.9 },
  },
  { what: '  of rounds', value: `${number(Math.min(...result.ratios), 2)} to ${number(Math.max(...result.ratios), 2)}` },
  { what: 'CPU a write, runtime', value: `${number(result.cpuMsPerWriteRuntime, 3)} ms` },
  { what: 'CPU a write, bare pool', value: `${number(result.cpuMsPerWriteBare, 3)} ms` },
]

const fleetRows = (result: FleetResult): readonly Row[] => [
  { what: 'JSON of a stake without managedFields', value: `${number(result.jsonBytesPerStake, 0)} B` },
  {
    what: 'heap a stake',
    value: `${number(result.heapBytesPerStake, 0)} B`,
    aim: atMost(result.heapBytesPerStake, 2500, 'at most 2500 B'),
  },
  { what: 'heap of the operator', value: megabytes(result.heapBytes) },
  { what: 'resident memory', value: `${megabytes(result.residentBytes)} (without stakes ${megabytes(result.residentBytesEmpty)})` },
  {
    what: '  the most since the start, of that',
    value: number(result.peakResidentBytes / result.residentBytes, 2),
    aim: { text: 'at most 1.3', met: result.peakResidentBytes <= 1.3 * result.residentBytes },
  },
  {
    what: 'start to caches full',
    value: `${number(result.readyMs / 1000, 2)} s (without stakes ${number(result.readyMsEmpty / 1000, 2)} s)`,
  },
  { what: 'start to every stake looked at', value: `${number(result.settledMs / 1000, 2)} s` },
  {
    what: '  CPU of the operator until then',
    value: `${number(result.settledCpuMs / 1000, 2)} s (without stakes ${number(result.settledCpuMsEmpty / 1000, 2)} s)`,
  },
  { what: '  requests of the operator', value: `${result.requestsUntilSettled} (without stakes ${result.requestsUntilSettledEmpty})` },
  {
    what: `status writes in ${result.quietSeconds} s of quiet`,
    value: String(result.statusWritesWhileQuiet),
    aim: { text: 'none', met: result.statusWritesWhileQuiet === 0 },
  },
  { what: `other requests in ${result.quietSeconds} s of quiet`, value: String(result.requestsWhileQuiet) },
  { what: 'CPU while quiet', value: `${number(result.cpuMsPerSecondWhileQuiet)} ms a second` },
]

const lateRows = (result: StakesResult): readonly Row[] => [
  { what: 'stakes sent a second', value: number(result.sentPerSecond) },
  { what: 'the most in flight', value: String(result.mostInFlight) },
  { what: 'stakes a second, created to Confirmed', value: number(result.stakesPerSecond) },
  { what: 'operator CPU a stake', value: `${number(result.operatorCpuMsPerStake)} ms` },
  { what: 'JSON-RPC calls a stake', value: number(result.rpcCallsPerStake, 2) },
]

const historyRows = (result: HistoryResult): readonly Row[] => [
  { what: 'file', value: megabytes(result.fileBytes) },
  {
    what: 'start to the first answer for a key',
    value: `${number(result.firstAnswerMs / 1000, 2)} s`,
    aim: { text: 'at most 60 s', met: result.firstAnswerMs <= 60_000 },
  },
  {
    what: 'start to the first signature',
    value: `${number(result.firstSignatureMs / 1000, 2)} s`,
    aim: { text: 'at most 60 s', met: result.firstSignatureMs <= 60_000 },
  },
  { what: '  and each answer after it', value: `${number(result.lookupMs, 3)} ms` },
  { what: 'memory held', value: megabytes(result.heldBytes), aim: atMost(result.heldBytes, 100e6, 'at most 100 MB') },
  { what: '  the most meanwhile', value: megabytes(result.peakBytes), aim: atMost(result.peakBytes, 100e6, 'at most 100 MB') },
]

const trackerRows = (result: TrackerResult): readonly Row[] => [
  { what: 'a pass, all in flight', value: `${number(result.inFlightMs / 1000)} s`, aim: atMost(result.inFlightMs, 10_000, 'at most 10 s') },
  { what: '  of the processor’s time', value: `${number(result.inFlightCpuMs / 1000)} s` },
  { what: 'a pass, all final', value: `${number(result.undecidedMs / 1000)} s`, aim: atMost(result.undecidedMs, 10_000, 'at most 10 s') },
  { what: 'what the beacon chain shows of all', value: `${number(result.statusesMs / 1000)} s` },
]

const requestsRows = (result: RequestsResult): readonly Row[] => {
  const pass = (what: string, ms: number): Row => ({ what, value: `${number(ms / 1000)} s`, aim: atMost(ms, 10_000, 'at most 10 s') })
  return [
    pass('the longest pass that finds what nobody reported', result.unreportedMs),
    { what: '  passes until all were found', value: number(result.unreportedPasses, 0) },
    pass('a pass, each judged', result.judgedMs),
    pass('a pass, nothing new of any', result.unchangedMs),
    pass('a pass, each settled', result.settledMs),
    pass('a pass, all waiting to be paid', result.payingMs),
  ]
}

function serviceRows(result: ServiceResult): readonly Row[] {
  const reads = result.getsPerSecond / result.bareGetsPerSecond
  const creations = result.barePostsPerSecond / result.postsPerSecond
  return [
    { what: 'GET of a stake a second', value: number(result.getsPerSecond, 0) },
    { what: '  bare Fastify', value: number(result.bareGetsPerSecond, 0) },
    { what: '  ratio', value: number(reads, 2), aim: { text: 'at least 0.5', met: reads >= 0.5 } },
    { what: 'POST of a stake a second', value: number(result.postsPerSecond, 0) },
    { what: '  bare: its BLS and two database round trips', value: number(result.barePostsPerSecond, 0) },
    { what: '  times as long', value: number(creations, 2), aim: atMost(creations, 1.5, 'at most 1.5') },
    {
      what: 'p99 of a GET while POSTs saturate',
      value: `${number(result.getP99Ms, 0)} ms`,
      aim: atMost(result.getP99Ms, 50, 'at most 50 ms'),
    },
    { what: 'answers that failed', value: String(result.failed), aim: { text: 'none', met: result.failed === 0 } },
  ]
}

const validatorSetRows = (result: ValidatorSetResult): readonly Row[] => [
  { what: 'the answer', value: megabytes(result.bytes) },
  { what: 'processor’s time to find the keys in it', value: `${number(result.scanCpuMs / 1000)} s` },
  { what: '  to parse it', value: `${number(result.parseCpuMs / 1000)} s` },
]

export function printReport(report: Report, print: (line: string) => void): void {
  const { machine, stakes, runtime, fleet, late, history, tracker, requests, validatorSet, service } = report
  print(`\nNode ${machine.node}, ${machine.cores} × ${machine.cpu}, load ${number(machine.load1)} at the start, ${machine.at}`)
  for (const result of stakes ?? []) section(`(a) ${result.stakes} stakes on an instant chain and service`, stakesRows(result), print)
  if (runtime)
    section(`(b) ${runtime.objects} objects × (1 create + 8 fenced status patches), ${runtime.rounds} rounds`, runtimeRows(runtime), print)
  if (history) section(`(e) ${history.deposits} deposits in a file, made up, and some days of them since`, historyRows(history), print)
  if (validatorSet)
    section(
      `(e) the set of ${validatorSet.validators} validators, of a beacon node (not read: ADR 16)`,
      validatorSetRows(validatorSet),
      print,
    )
  if (tracker)
    section(`(e) the service's tracker over ${tracker.validators} validators, on its embedded database`, trackerRows(tracker), print)
  if (requests)
    section(`(e) the tracker over ${requests.requests} withdrawals, among ${requests.logs} EIP-7002 logs`, requestsRows(requests), print)
  for (const result of service ?? []) section(`(service) on ${result.database}, 16 connections`, serviceRows(result), print)
  if (fleet) section(`(c) ${fleet.stakes} settled stakes`, fleetRows(fleet), print)
  if (late)
    section(
      `(d) ${late.result.stakes} stakes of one signer, a block every ${late.blockMs} ms, final ${late.finality} blocks later`,
      lateRows(late.result),
      print,
    )
}

function section(title: string, rows: readonly Row[], print: (line: string) => void): void {
  print(`\n${title}`)
  for (const { what, value, aim } of rows)
    print(`  ${what.padEnd(46)} ${value.padStart(10)}${aim === undefined ? '' : `   ${aim.met ? 'met' : 'MISSED'}: ${aim.text}`}`)
}
