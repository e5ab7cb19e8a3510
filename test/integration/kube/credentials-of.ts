import { createCredentials } from '../../../src/operator/kube/credentials.ts'
import type { KubeUser } from '../../../src/operator/kube/kubeconfig.ts'
import { createFakeClock } from './fake-clock.ts'

/** Credentials of one user. */
export const credentialsOf = (user: Omit<KubeUser, 'name'>, clock = createFakeClock()) =>
  createCredentials({
    source: {
      kubeConfig: {
        clusters: [{ name: 'c', server: 'https://10.0.0.1/k8s/', tlsServerName: 'kubernetes' }],
        users: [{ name: 'u', ...user }],
        contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
        currentContext: 'x',
      },
    },
    clock,
    refreshMs: 1_000,
  })
