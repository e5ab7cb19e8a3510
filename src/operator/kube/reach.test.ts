import { describe, expect, test } from 'vitest'
import { createFakeClock, settle } from '../../../test/integration/kube/fake-clock.ts'
import { KubeError, KubeTransportError, kubeError } from './errors.ts'
import { createReach } from './reach.ts'

const cluster = { name: 'kubeconfig /k, context "prod", server api.example:6443', host: 'api.example' }
const down = new KubeTransportError('ECONNREFUSED', 'the API server can’t be reached: connect ECONNREFUSED 10.0.0.1:6443')

/** The start of a process whose probe ends as told, the last answer for ever. */
function start(answers: readonly (Error | undefined)[]) {
  const clock = createFakeClock()
  const lines: { level: string; text: string; reason?: unknown }[] = []
  const write = (level: string) => (fields: object, text: string) => void lines.push({ level, text, ...fields })
  let asked = 0
  const reach = createReach({
    cluster,
    clock,
    random: () => 0.5,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    probe: async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)]
      if (answer !== undefined) throw answer
    },
  })
  const stop = new AbortController()
  const state: { ended?: unknown } = {}
  reach.reached(stop.signal).then(
    (reached) => {
      state.ended = reached
    },
    (error: unknown) => {
      state.ended = error
    },
  )
  return { clock, lines, reach, stop, state, asked: () => asked }
}

test.each([
  { what: 'an answer', answer: undefined },
  { what: 'that there is no such object', answer: new KubeError(404, 'NotFound', 'leases "x" not found') },
])('$what is an answer: nothing is waited for or told', async ({ answer }) => {
  const { state, lines, reach } = start([answer])
  expect(reach.trouble()).toMatch(/^the API server is not reached/)
  await settle()
  expect(state.ended).toBe(true)
  expect(reach.trouble()).toBeUndefined()
  expect(lines).toEqual([])
})

test('a server that is down is waited for, less and less often, with a line each minute and one when it answers', async () => {
  const { clock, lines, reach, state, asked } = start([...Array.from({ length: 100 }, () => down), undefined])
  await clock.advance(30_000)
  const first = asked()
  expect(first).toBeGreaterThan(5)
  expect(reach.trouble()).toBe('the API server is not reached: it does not answer (ECONNREFUSED)')
  expect(lines).toEqual([
    {
      level: 'warn',
      text: 'the API server is not reached: waiting for it',
      cluster: cluster.name,
      reason: 'it does not answer (ECONNREFUSED)',
    },
  ])
  await clock.advance(270_000)
  // Ten seconds at the most between two looks: it is back soon after the server is.
  expect(asked() - first).toBeGreaterThanOrEqual(26)
  expect(asked() - first).toBeLessThanOrEqual(28)
  expect(lines).toHaveLength(5)
  await clock.advance(900_000)
  expect(state.ended).toBe(true)
  expect(reach.trouble()).toBeUndefined()
  expect(lines.at(-1)).toMatchObject({ level: 'info', text: 'the API server answers' })
})

describe('is waited for', () => {
  test.each([
    {
      what: 'a name that is not known',
      answer: new KubeTransportError('ENOTFOUND', 'x'),
      says: /the name api\.example is not known \(ENOTFOUND\)/,
    },
    { what: 'no answer in time', answer: new KubeTransportError('TIMEOUT', 'x'), says: /does not answer \(TIMEOUT\)/ },
    {
      what: 'a plugin that fails',
      answer: new KubeTransportError('PLUGIN', 'the credentials of user "u" could not be loaded'),
      says: /of user "u"/,
    },
    {
      what: 'a right that is not there yet',
      answer: new KubeError(403, 'Forbidden', 'User "u" cannot get leases'),
      says: /User "u" cannot get leases \(403\)/,
    },
    { what: 'a server that starts', answer: new KubeError(503, 'ServiceUnavailable', 'starting'), says: /starting/ },
    { what: 'a page of a proxy', answer: kubeError(404, '<html>', 'get leases'), says: /no Kubernetes API server \(404\)/ },
  ])('$what', async ({ answer, says }) => {
    const { clock, lines, state, stop } = start([answer])
    await clock.advance(600_000)
    expect(state.ended).toBeUndefined()
    expect(lines[0]?.reason).toMatch(says)
    stop.abort()
    await settle()
    expect(state.ended).toBe(false)
  })
})

describe('ends the program, with file, context and server', () => {
  test.each([
    {
      what: 'credentials that are refused',
      answer: new KubeError(401, 'Unauthorized', 'Unauthorized'),
      says: /refuses the credentials \(401\)/,
    },
    {
      what: 'a certificate of another authority',
      answer: new KubeTransportError('SELF_SIGNED_CERT_IN_CHAIN', 'x'),
      says: /not from the authority that is named .*put the CA of this cluster into certificate-authority/,
    },
    {
      what: 'a certificate for another name',
      answer: new KubeTransportError('ERR_TLS_CERT_ALTNAME_INVALID', 'x'),
      says: /not for api\.example .*set tls-server-name/,
    },
    { what: 'a port without TLS', answer: new KubeTransportError('ERR_SSL_WRONG_VERSION_NUMBER', 'x'), says: /speaks no TLS/ },
    { what: 'http to a port with TLS', answer: kubeError(400, 'Client sent an HTTP request', 'get leases'), says: /is its URL https/ },
    {
      what: 'a refused client certificate',
      answer: new KubeTransportError('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'x'),
      says: /refuses the client certificate/,
    },
    { what: 'a plugin that is not there', answer: new KubeTransportError('CREDENTIALS', 'spawn aws ENOENT'), says: /spawn aws ENOENT/ },
  ])('$what', async ({ answer, says }) => {
    const { clock, lines, state } = start([answer])
    await clock.advance(10_000)
    expect(state.ended).toMatchObject({ name: 'ConfigError', message: expect.stringMatching(says) })
    expect((state.ended as Error).message).toMatch(/^kubeconfig \/k, context "prod", server api\.example:6443: [^\n]*$/)
    expect(lines).toEqual([])
  })

  test('not by one refusal of a server that is just starting', async () => {
    const refused = new KubeError(401, 'Unauthorized', 'Unauthorized')
    const { clock, state } = start([refused, refused, down, refused, refused, undefined])
    await clock.advance(60_000)
    expect(state.ended).toBe(true)
  })
})
