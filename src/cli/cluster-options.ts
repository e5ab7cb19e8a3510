import { Option } from 'commander'
import type { Cluster } from '../inspect/cluster.ts'

export interface ClusterFlags {
  readonly kubeconfig?: string
  readonly context?: string
}

export const kubeconfigOption = () =>
  new Option('--kubeconfig <file>', 'kubeconfig (default: as kubectl: KUBECONFIG, ~/.kube/config, or the service account of the pod)')
export const contextOption = () => new Option('--context <name>', 'context of the kubeconfig, instead of the current one')

export async function open(flags: ClusterFlags, version: string): Promise<Cluster> {
  const [{ openCluster }, { systemClock }] = await Promise.all([import('../inspect/cluster.ts'), import('../lib/clock.ts')])
  return openCluster(flags, { clock: systemClock, userAgent: `kubectl-staking/${version}` })
}
