import { constants, getPriority, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { readSeedFile } from '../seed.ts'
import { depositFor } from './deposit-maker.ts'
import type { FromWorker, ToWorker, WorkerSetup } from './deposit-workers.ts'

/** A thread of the pool (see `deposit-workers.ts`): it reads the seed itself, so that no key goes from thread to thread. */
const { seedFile } = workerData as WorkerSetup
const port = parentPort
if (port === null) throw new Error('this is run as a worker')
const tell = (message: FromWorker) => port.postMessage(message)
// Whoever only reads comes first. On Linux a thread has a priority of its own; elsewhere the whole process would get it.
if (process.platform === 'linux') setPriority(Math.min(getPriority() + 5, constants.priority.PRIORITY_LOW))
const keys = await readSeedFile(seedFile)

port.on('message', ({ id, index, terms }: ToWorker) => {
  try {
    tell({ id, made: depositFor(keys, index, terms) })
  } catch (error) {
    tell({ id, error: error instanceof Error ? error.message : 'failed' })
  }
})
tell({ ready: keys.fingerprint })
