import { stringify } from 'yaml'

export interface KubeconfigOptions {
  readonly url: string
  readonly caPem: string
  readonly user: string
  readonly token: string
  readonly namespace?: string
}

/** A kubeconfig with one cluster, one user and one context. */
export function kubeconfig({ url, caPem, user, token, namespace }: KubeconfigOptions): string {
  const cluster = 'staking-test'
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: cluster, cluster: { server: url, 'certificate-authority-data': Buffer.from(caPem).toString('base64') } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: user, context: { cluster, user, ...(namespace === undefined ? {} : { namespace }) } }],
    'current-context': user,
  })
}
