import { describe, expect, test } from 'vitest'
import { createTestClock } from '../testing/test-clock.ts'
import { isOwnHost } from './own-host.ts'
import { createPage } from './page.ts'
import type { Views } from './views.ts'

function open(changes: Partial<Views> = {}) {
  const clock = createTestClock()
  const failures: unknown[] = []
  const views: Views = {
    fleet: (query) => `fleet ${query.get('kind') ?? ''}`,
    resource: ({ kind, namespace, name }) => (name === 'gone' ? undefined : `${kind} ${namespace} ${name}`),
    signers: () => 'signers',
    signer: (name) => (name === 'gone' ? undefined : `signer ${name}`),
    missing: (depth) => `missing ${depth}`,
    ...changes,
  }
  const page = createPage({ views, clock, onFailure: (error) => void failures.push(error) })
  const get = (url: string, asked: { readonly method?: string; readonly host?: string | undefined } = {}) =>
    page({ method: 'GET', url, host: 'localhost:8081', ...asked })
  return { clock, failures, get }
}

describe('the paths of the page', () => {
  test.each([
    ['/ui/', 200, 'fleet '],
    ['/ui/?kind=EthereumStake', 200, 'fleet EthereumStake'],
    ['/ui/signers', 200, 'signers'],
    ['/ui/signers/treasury', 200, 'signer treasury'],
    ['/ui/resources/EthereumStake/team-a/stake-1', 200, 'EthereumStake team-a stake-1'],
    ['/ui/resources/EthereumStake/team-a/%3Cb%3E', 200, 'EthereumStake team-a <b>'],
    ['/ui/resources/EthereumStake/team-a/gone', 404, 'missing 3'],
    ['/ui/signers/gone', 404, 'missing 1'],
    ['/ui/other', 404, 'missing 0'],
    ['/ui/../../etc/passwd', 404, 'missing 3'],
    ['/ui/resources/%E0%A4%A/a/b', 400, 'The path can not be read.\n'],
  ])('%s is answered with %i', (url, status, body) => {
    expect(open().get(url)).toMatchObject({ status, body })
  })

  test.each(['/', '/ui', '/?x=1'])('%s leads to the page, wherever a proxy has put it', (url) => {
    expect(open().get(url)).toMatchObject({ status: 308, headers: { location: 'ui/' } })
  })

  test.each(['/metrics', '/healthz', '/readyz', '/uix', '/favicon.ico'])('%s is none of it', (url) => {
    expect(open().get(url)).toBeUndefined()
  })

  test('its style sheet and its icon are its own', () => {
    const { get } = open()
    expect(get('/ui/style.css?v=1')).toMatchObject({ status: 200, headers: { 'content-type': 'text/css; charset=utf-8' } })
    expect(get('/ui/icon.svg')).toMatchObject({ status: 200, headers: { 'content-type': 'image/svg+xml; charset=utf-8' } })
  })
})

test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', ''])('the method %s is refused', (method) => {
  for (const url of ['/ui/', '/ui/signers/treasury', '/ui/style.css', '/'])
    expect(open().get(url, { method })).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
})

test('every answer forbids scripts, frames and all that is not its own', () => {
  const { get } = open()
  for (const url of ['/ui/', '/ui/none', '/ui', '/ui/style.css', '/ui/%', '/ui/signers'])
    expect(get(url, { method: 'HEAD' })?.headers).toMatchObject({
      'content-security-policy':
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    })
})

test('views are bounded, for all who look together; the style sheet is not one of them', () => {
  const { clock, get } = open()
  const answers = (count: number) => Array.from({ length: count }, () => get('/ui/')?.status)
  expect(answers(30)).toEqual(Array.from({ length: 30 }, () => 200))
  expect(get('/ui/')).toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
  expect(get('/ui/style.css')?.status).toBe(200)
  clock.advance(1_000)
  expect(answers(6)).toEqual([200, 200, 200, 200, 200, 429])
  clock.advance(1_000)
  expect(get('/ui/')?.status, 'those that were refused cost nothing').toBe(200)
})

test('a view that fails says so in the log, and nothing of it to who looks', () => {
  const { failures, get } = open({
    fleet: () => {
      throw new Error('secret-canary')
    },
  })
  const answer = get('/ui/')
  expect(answer?.status).toBe(500)
  expect(JSON.stringify(answer)).not.toContain('secret-canary')
  expect(String(failures[0])).toContain('secret-canary')
})

describe('the name that it is asked by', () => {
  test.each([
    'localhost:8081',
    '127.0.0.1:8081',
    '10.1.2.3',
    '[::1]:8081',
    '[fd00::1]',
    'staking-operator',
    'staking-operator.staking-system.svc:8081',
    'staking-operator.staking-system.svc.cluster.local:8081',
  ])('%s is one that it answers to', (host) => {
    expect(isOwnHost(host)).toBe(true)
    expect(open().get('/ui/', { host })?.status).toBe(200)
  })

  test.each([
    undefined,
    '',
    'evil.example',
    'evil.example:8081',
    'x.svc.evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    '1.2.3.4:8081:9',
    'a b',
    '[x]',
  ])('%s may be that of a page that wants to read this one, and is refused', (host) => {
    expect(isOwnHost(host)).toBe(false)
    expect(open().get('/ui/', { host })?.status).toBe(421)
  })
})
