import { systemClock } from '../../../src/lib/clock.ts'
import { createKubeApi, type KubeApi } from '../../../src/operator/kube/api.ts'
import { parseKubeconfig } from '../../../src/operator/kube/kubeconfig.ts'
import type { ControlPlane } from '../../cluster/control-plane.ts'

export const adminApi = (cluster: ControlPlane): KubeApi =>
  createKubeApi({ kubeconfigPath: cluster.adminKubeconfigPath, clock: systemClock, userAgent: 'kube-runtime-test' })

/** The administrator, by another port of this machine. */
export function apiThrough(cluster: ControlPlane, port: number, requestTimeoutMs = 2_000): KubeApi {
  const kubeConfig = parseKubeconfig(cluster.adminKubeconfig.replace(cluster.url, `https://127.0.0.1:${port}`))
  return createKubeApi({ kubeConfig, clock: systemClock, userAgent: 'kube-runtime-test', requestTimeoutMs })
}

export const portOf = (cluster: ControlPlane): number => Number(new URL(cluster.url).port)

/** Polls until it is so. @throws after `timeoutMs`. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const signal = AbortSignal.timeout(timeoutMs)
  while (!(await isSo())) {
    if (signal.aborted) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await systemClock.sleep(25, signal).catch(() => {})
  }
}
