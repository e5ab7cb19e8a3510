import { describe, expect, test } from 'vitest'
import { checkedLookup, isPublic, refusalOf, TargetError } from './target.ts'

const strict = { allowHttp: false, allowAddresses: [] }

describe('a URL of a webhook endpoint', () => {
  test.each(['https://hooks.example/x?y=1', 'https://hooks.example:8443/', 'https://8.8.8.8/', 'https://[2606:4700::1111]/'])(
    '%s is taken',
    (url) => {
      expect(refusalOf(url, strict)).toBeUndefined()
    },
  )

  test.each([
    ['http://hooks.example/', 'must be an https URL'],
    ['ftp://hooks.example/', 'must be an https URL'],
    ['file:///etc/passwd', 'must be an https URL'],
    ['gopher://hooks.example/', 'must be an https URL'],
    ['hooks.example', 'is not a URL'],
    ['', 'is not a URL'],
    ['https://', 'is not a URL'],
    ['https://user:pass@hooks.example/', 'must not hold a user name or password'],
    ['https://hooks.example@127.0.0.1/', 'must not hold a user name or password'],
    ['https://hooks.example/#x', 'must not hold a fragment'],
    // All these are addresses in disguise.
    ['https://127.0.0.1/', 'must be a public address'],
    ['https://127.1/', 'must be a public address'],
    ['https://2130706433/', 'must be a public address'],
    ['https://0x7f000001/', 'must be a public address'],
    ['https://0177.0.0.1/', 'must be a public address'],
    ['https://0/', 'must be a public address'],
    ['https://①②⑦.0.0.1/', 'must be a public address'],
    ['https://169.254.169.254/latest/meta-data', 'must be a public address'],
    ['https://10.0.0.1/', 'must be a public address'],
    ['https://[::1]/', 'must be a public address'],
    ['https://[::]/', 'must be a public address'],
    ['https://[::ffff:127.0.0.1]/', 'must be a public address'],
    ['https://[::ffff:8.8.8.8]/', 'must be a public address'],
    ['https://[64:ff9b::7f00:1]/', 'must be a public address'],
    ['https://[fd00:ec2::254]/', 'must be a public address'],
  ])('%s is refused: it %s', (url, why) => {
    expect(refusalOf(url, strict)).toBe(why)
  })

  test('of http or a private address is taken where the configuration says so', () => {
    expect(refusalOf('http://10.1.2.3/', { allowHttp: true, allowAddresses: ['10.0.0.0/8'] })).toBeUndefined()
    expect(refusalOf('http://127.0.0.1/', { allowHttp: true, allowAddresses: ['10.0.0.0/8'] })).toBe('must be a public address')
    expect(refusalOf('http://hooks.example/', { allowHttp: false, allowAddresses: ['0.0.0.0/0'] })).toBe('must be an https URL')
  })
})

test.each([
  ...['0.0.0.0', '0.1.2.3', '10.255.255.255', '100.64.0.1', '100.127.255.255', '127.0.0.1', '127.255.255.254', '169.254.169.254'],
  ...['172.16.0.1', '172.31.255.255', '192.0.0.8', '192.0.2.1', '192.88.99.1', '192.168.1.1', '198.18.0.1', '198.51.100.1', '203.0.113.1'],
  ...['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...['::', '::1', '::ffff:10.0.0.1', '::ffff:8.8.8.8', '::127.0.0.1', '64:ff9b::a00:1', '64:ff9b:1::1', '100::1', '2001::1', '2001:10::1'],
  ...['2001:db8::1', '2002:7f00:1::', '3fff::1', '5f00::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'fec0::1', 'ff02::1', 'no address', ''],
])('%s is not public', (address) => {
  expect(isPublic(address)).toBe(false)
})
test.each([
  '1.1.1.1',
  '100.63.255.255',
  '100.128.0.0',
  '172.15.0.1',
  '172.32.0.1',
  '192.0.1.1',
  '223.255.255.255',
  '2606:4700::1',
  '2a00::1',
])('%s is public', (address) => {
  expect(isPublic(address)).toBe(true)
})

describe('a name', () => {
  const look = (addresses: readonly string[], policy: Parameters<typeof checkedLookup>[0] = strict) =>
    new Promise<unknown>((done) => {
      const lookup = checkedLookup(policy, async () => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))
      lookup('hooks.example', { all: true }, (error, found) => done(error ?? found))
    })

  test('leads to all its addresses where they are public', async () => {
    expect(await look(['8.8.8.8', '2606:4700::1'])).toEqual([
      { address: '8.8.8.8', family: 4 },
      { address: '2606:4700::1', family: 6 },
    ])
  })
  test.each([[['127.0.0.1']], [['8.8.8.8', '10.0.0.1']], [['2606:4700::1', '::1']], [['169.254.169.254']], [[]]])(
    'that leads to %j is refused as a whole',
    async (addresses) => {
      expect(await look(addresses)).toBeInstanceOf(TargetError)
    },
  )
  test('may lead to private addresses that the configuration names', async () => {
    expect(await look(['10.0.0.1'], { allowHttp: false, allowAddresses: ['10.0.0.0/8'] })).toEqual([{ address: '10.0.0.1', family: 4 }])
  })
})
