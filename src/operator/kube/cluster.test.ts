import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { ConfigError } from '../../lib/config-error.ts'
import { checkCluster } from './cluster.ts'

const dir = mkdtempSync(join(tmpdir(), 'cluster-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

let written = 0
function file(text: string): string {
  const path = join(dir, `config-${written++}`)
  writeFileSync(path, text)
  return path
}

const document = (change: { cluster?: object; user?: object; context?: object; current?: string | null } = {}) => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443', ...change.cluster } }],
  users: [{ name: 'u', user: { token: 'hunter2', ...change.user } }],
  contexts: [{ name: 'prod', context: { cluster: 'c', user: 'u', ...change.context } }],
  ...(change.current === null ? {} : { 'current-context': change.current ?? 'prod' }),
})
const kubeconfig = (change: Parameters<typeof document>[0] = {}): string => file(stringify(document(change)))
const messageOf = (path: string): string => {
  try {
    checkCluster({ kubeconfigPath: path }, {})
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return 'nothing is wrong'
}

test('a kubeconfig is named by its file, its context and its server', () => {
  const path = kubeconfig()
  expect(checkCluster({ kubeconfigPath: path }, {})).toEqual({
    name: `kubeconfig ${path}, context "prod", server 10.0.0.1:6443`,
    host: '10.0.0.1',
  })
})

describe('what is wrong with a kubeconfig is one line that names the file and says what to do', () => {
  test.each<{ what: string; path: () => string; says: RegExp }>([
    { what: 'no such file', path: () => join(dir, 'none'), says: /cannot be read \(ENOENT\): name the right file with --kubeconfig/ },
    { what: 'a folder', path: () => dir, says: /cannot be read \(EISDIR\)/ },
    { what: 'a list of files', path: () => '/a/config:/b/config', says: /one file only can be named/ },
    { what: 'an empty file', path: () => file('\n'), says: /is empty$/ },
    { what: 'no YAML', path: () => file('clusters: [\ntoken: hunter2'), says: /is not YAML \(line \d\)$/ },
    { what: 'a text', path: () => file('hunter2'), says: /is not a kubeconfig$/ },
    { what: 'a file of something else', path: () => file('kind: Pod'), says: /has no current-context: .*its contexts are none$/ },
    {
      what: 'another list of things',
      path: () => file('clusters: [hunter2]'),
      says: /is not a kubeconfig: clusters\[0\]\.\w+ is missing$/,
    },
    {
      what: 'a server that is no text',
      path: () => kubeconfig({ cluster: { server: 6443 } }),
      says: /is not a kubeconfig: clusters\[0\]\.cluster\.server is no text$/,
    },
    { what: 'no server', path: () => kubeconfig({ cluster: { server: '' } }), says: /clusters\[0\]\.cluster\.server is missing$/ },
    {
      what: 'a server without a scheme',
      path: () => kubeconfig({ cluster: { server: '10.0.0.1:6443' } }),
      says: /write https:\/\/HOST:PORT/,
    },
    {
      what: 'a server without TLS',
      path: () => kubeconfig({ cluster: { server: 'http://10.0.0.1' } }),
      says: /its URL is http, .*: write https/,
    },
    {
      what: 'no current context',
      path: () => kubeconfig({ current: null }),
      says: /no current-context: set one .*its contexts are "prod"$/,
    },
    {
      what: 'an unknown context',
      path: () => kubeconfig({ current: 'test' }),
      says: /current-context "test" is not in the file: .* "prod"$/,
    },
    {
      what: 'an unknown cluster',
      path: () => kubeconfig({ context: { cluster: 'd' } }),
      says: /context "prod": its cluster "d" is not in the file, which has "c"/,
    },
    {
      what: 'an unknown user',
      path: () => kubeconfig({ context: { user: 'v' } }),
      says: /context "prod": its user "v" is not in the file, which has "u"/,
    },
    {
      what: 'a missing CA',
      path: () => kubeconfig({ cluster: { 'certificate-authority': 'ca.pem' } }),
      says: /server 10\.0\.0\.1:6443: its certificate-authority .*ca\.pem cannot be read \(ENOENT\)/,
    },
    {
      what: 'a missing client certificate',
      path: () => kubeconfig({ user: { 'client-certificate': '/none/cert.pem' } }),
      says: /its client-certificate \/none\/cert\.pem cannot be read/,
    },
    {
      what: 'a missing client key',
      path: () => kubeconfig({ user: { 'client-key': '/none/key.pem' } }),
      says: /its client-key \/none\/key\.pem cannot be read/,
    },
    {
      what: 'a CA that is none',
      path: () => kubeconfig({ cluster: { 'certificate-authority-data': 'aHVudGVyMg==' } }),
      says: /its certificate-authority holds no certificate in PEM/,
    },
    {
      what: 'a client certificate that is none',
      path: () => kubeconfig({ user: { 'client-certificate-data': 'aHVudGVyMg==', 'client-key-data': 'aHVudGVyMg==' } }),
      says: /its client-certificate and client-key can't be used/,
    },
  ])('$what', ({ path, says }) => {
    const name = path()
    const message = messageOf(name)
    expect(message).toMatch(says)
    expect(message).toContain(`kubeconfig ${name}`)
    expect(message.split('\n')).toHaveLength(1)
    expect(message).not.toContain('hunter2')
  })
})

describe('inside a cluster', () => {
  const env = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }

  test('outside of a pod a kubeconfig is asked for', () => {
    expect(() => checkCluster({ inCluster: true }, {})).toThrow(/in no pod .*name a kubeconfig with --kubeconfig or KUBECONFIG/)
  })

  test('a pod without the token of its ServiceAccount says so', () => {
    expect(() => checkCluster({ inCluster: true, pathPrefix: dir }, env)).toThrow(
      /token cannot be read \(ENOENT\): set automountServiceAccountToken/,
    )
  })
})
