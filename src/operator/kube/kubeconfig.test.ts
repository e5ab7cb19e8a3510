import { describe, expect, test } from 'vitest'
import { credentialsOf } from '../../../test/integration/kube/credentials-of.ts'
import { type KubeUser, mergedKubeconfig, parseKubeconfig } from './kubeconfig.ts'

const text = `
apiVersion: v1
kind: Config
current-context: prod
clusters:
  - name: c
    cluster:
      server: https://10.0.0.1:6443/k8s/
      certificate-authority: pki/ca.crt
      tls-server-name: kubernetes
      proxy-url: http://proxy:3128
users:
  - name: u
    user:
      client-certificate: /etc/cert.pem
      client-key-data: a2V5
      tokenFile: token
      as: someone
  - name: plugin
    user:
      exec:
        apiVersion: client.authentication.k8s.io/v1
        command: bin/plugin
        args: [get-token, 1]
        env: [{ name: REGION, value: eu }]
  - name: nobody
contexts:
  - name: prod
    context: { cluster: c, user: u, namespace: team-a }
`

test('a kubeconfig is read as client-go reads it: files are relative to it, a plugin named by a path too', () => {
  const { clusters, users, contexts, currentContext } = parseKubeconfig(text, '/etc/kube')
  expect(clusters).toEqual([
    {
      name: 'c',
      server: 'https://10.0.0.1:6443/k8s/',
      caFile: '/etc/kube/pki/ca.crt',
      skipTLSVerify: false,
      tlsServerName: 'kubernetes',
      proxyUrl: 'http://proxy:3128',
    },
  ])
  expect(users).toEqual([
    { name: 'u', certFile: '/etc/cert.pem', keyData: 'a2V5', tokenFile: '/etc/kube/token', impersonateUser: 'someone' },
    {
      name: 'plugin',
      exec: {
        apiVersion: 'client.authentication.k8s.io/v1',
        command: '/etc/kube/bin/plugin',
        args: ['get-token', '1'],
        env: [{ name: 'REGION', value: 'eu' }],
      },
    },
    { name: 'nobody' },
  ])
  expect(contexts).toEqual([{ name: 'prod', cluster: 'c', user: 'u', namespace: 'team-a' }])
  expect(currentContext).toBe('prod')
})

test('of several files the first that says something counts', () => {
  const file = (server: string, current?: string) => ({
    clusters: [{ name: 'c', server }],
    users: [],
    contexts: [],
    ...(current === undefined ? {} : { currentContext: current }),
  })
  expect(mergedKubeconfig([file('https://a'), file('https://b', 'x'), file('https://c', 'y')])).toEqual({
    ...file('https://a', 'x'),
  })
})

describe('what a request carries', () => {
  test.each<{ what: string; user: Omit<KubeUser, 'name'>; headers: readonly (readonly [string, string])[] }>([
    { what: 'a token', user: { token: 'abc\n' }, headers: [['authorization', 'Bearer abc']] },
    { what: 'a name and a password', user: { username: 'a', password: 'b' }, headers: [['authorization', 'Basic YTpi']] },
    {
      what: 'whom it speaks for',
      user: { token: 'abc', impersonateUser: 'someone' },
      headers: [
        ['impersonate-user', 'someone'],
        ['authorization', 'Bearer abc'],
      ],
    },
    { what: 'nothing', user: {}, headers: [] },
  ])('$what', async ({ user, headers }) => {
    expect(await credentialsOf(user).access()).toMatchObject({
      origin: 'https://10.0.0.1',
      basePath: '/k8s',
      headers,
      tls: { servername: 'kubernetes' },
    })
  })
})
