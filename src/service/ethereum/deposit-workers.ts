import { availableParallelism } from 'node:os'
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Logger } from '../../lib/log.ts'
import type { DepositMaker, DepositTerms, MadeDeposit } from './deposit-maker.ts'

export interface WorkerSetup {
  readonly seedFile: string
}
export interface ToWorker {
  readonly id: number
  readonly index: bigint
  readonly terms: DepositTerms
}
export type FromWorker =
  | { readonly ready: string }
  | { readonly id: number; readonly made: MadeDeposit }
  | { readonly id: number; readonly error: string }

export interface DepositWorkersDeps extends WorkerSetup {
  /** Of the seed that the service runs with: a worker that reads another is not used. */
  readonly fingerprint: string
  /** Does the work while no worker can. */
  readonly inline: DepositMaker
  readonly log: Logger
  /** Default: one for each core, four at most. */
  readonly size?: number
}

const maxWorkers = 4
/** A worker that ended is not started again before. */
const againMs = 5_000

interface Slot {
  worker: Worker | undefined
  ready: boolean
  readonly waiting: Map<number, PromiseWithResolvers<MadeDeposit>>
}

/**
 * Makes deposits in threads of their own, so that a burst of them keeps nobody waiting who only reads. Each goes to the thread that has the least to do. Work
 * that a thread took with it when it ended is done again: it has no effect but its result.
 */
export function startDepositWorkers(deps: DepositWorkersDeps): DepositMaker {
  const { seedFile, fingerprint, inline, log, size = Math.min(availableParallelism(), maxWorkers) } = deps
  const file = join(import.meta.dirname, `deposit-worker${extname(import.meta.filename)}`)
  let closed = false
  let lastId = 0

  function start(slot: Slot): void {
    const setup: WorkerSetup = { seedFile }
    const worker = new Worker(file, { workerData: setup, stdout: false, stderr: false })
    slot.worker = worker
    worker.unref()
    worker.on('message', (message: FromWorker) => {
      if ('ready' in message) {
        slot.ready = message.ready === fingerprint
        if (!slot.ready) {
          log.error('the seed file is not the one that the service started with: deposits are made without workers')
          closed = true
          void worker.terminate()
        }
        return
      }
      const task = slot.waiting.get(message.id)
      slot.waiting.delete(message.id)
      if ('made' in message) task?.resolve(message.made)
      else task?.reject(new Error(message.error))
    })
    worker.on('error', (error) => log.warn({ err: error }, 'a worker that makes deposits failed: another one is started'))
    worker.once('exit', () => {
      slot.worker = undefined
      slot.ready = false
      const lost = new LostError()
      for (const task of slot.waiting.values()) task.reject(lost)
      slot.waiting.clear()
      if (!closed) setTimeout(() => closed || start(slot), againMs).unref()
    })
  }

  const slots: Slot[] = Array.from({ length: size }, () => ({ worker: undefined, ready: false, waiting: new Map() }))
  for (const slot of slots) start(slot)

  return {
    async make(index, terms, signal) {
      const [slot] = slots.filter(({ ready }) => ready).sort((a, b) => a.waiting.size - b.waiting.size)
      if (slot?.worker === undefined) return inline.make(index, terms, signal)
      const task = Promise.withResolvers<MadeDeposit>()
      const id = ++lastId
      slot.waiting.set(id, task)
      const { name, chainId, depositContractAddress, genesisForkVersion } = terms.network
      const message: ToWorker = { id, index, terms: { ...terms, network: { name, chainId, depositContractAddress, genesisForkVersion } } }
      const abort = () => task.reject(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      try {
        signal.throwIfAborted()
        slot.worker.postMessage(message)
        return await task.promise
      } catch (error) {
        if (error instanceof LostError) return inline.make(index, terms, signal)
        throw error
      } finally {
        slot.waiting.delete(id)
        signal.removeEventListener('abort', abort)
      }
    },
    async close() {
      closed = true
      await Promise.all(slots.map(({ worker }) => worker?.terminate()))
    },
  }
}

/** The thread ended before it answered. */
class LostError extends Error {}
