import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { untilEstablished } from '../cluster/apply.ts'
import { installRights, OPERATOR } from '../cluster/chart.ts'
import { type ControlPlane, type ControlPlaneOptions, type ServiceAccount, startControlPlane } from '../cluster/control-plane.ts'

export interface StackCluster {
  readonly cluster: ControlPlane
  /** Whom the operator runs as, where the definitions and its rights are there. */
  readonly installed?: ServiceAccount
}

/**
 * A control plane with the definitions and the operator's rights: a copy of the one that the first of a run makes. To make the objects that each API server begins with,
 * and then ours, takes as long again as to start it. Where a run gives no folder for that, or it is being made, an empty one.
 */
export async function startInstalled(options: ControlPlaneOptions): Promise<StackCluster> {
  const begins = await prepared(options)
  if (begins === undefined) return { cluster: await startControlPlane(options) }
  return { cluster: await startControlPlane({ ...options, begins }), installed: OPERATOR }
}

async function prepared({ log, signal }: ControlPlaneOptions): Promise<string | undefined> {
  const folder = process.env.STAKING_TEST_PREPARED
  if (folder === undefined) return undefined
  const dir = join(folder, 'cluster')
  if (existsSync(dir)) return dir
  try {
    mkdirSync(`${dir}-lock`)
  } catch {
    return undefined // another file of the run makes it
  }
  const making = `${dir}-making`
  const cluster = await startControlPlane({
    dir: making,
    ...(log === undefined ? {} : { log }),
    ...(signal === undefined ? {} : { signal }),
  })
  try {
    await installRights(cluster)
    await untilEstablished(cluster)
  } finally {
    await cluster.stop()
  }
  renameSync(making, dir)
  return dir
}
