import { lookup as resolve } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { type AddressCheck, addressCheck } from '../addresses.ts'

/** What an operator of the service permits beyond https to public addresses. */
export interface WebhookPolicy {
  readonly allowHttp: boolean
  /** Blocks of addresses that are not public and may be delivered to. */
  readonly allowAddresses: readonly string[]
}

/** An address that must not be delivered to. The message is for the tenant. */
export class TargetError extends Error {
  override readonly name = 'TargetError'
}

/** What is wrong with an endpoint's URL; undefined when nothing is. Where its name leads to is looked at when something is sent. */
export function refusalOf(text: string, policy: WebhookPolicy): string | undefined {
  const url = URL.parse(text)
  if (url === null) return 'is not a URL'
  if (url.protocol !== 'https:' && !(policy.allowHttp && url.protocol === 'http:')) return 'must be an https URL'
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password'
  if (url.hash !== '') return 'must not hold a fragment'
  const literal = literalOf(url)
  return literal !== undefined && !mayReach(policy)(literal) ? 'must be a public address' : undefined
}

/** The address where the host is one and no name. `URL` has made one form of all that mean an IPv4 address (`2130706433`, `0x7f.1`). */
export function literalOf({ hostname }: URL): string | undefined {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? undefined : host
}

/** Not globally reachable, by IANA's special-purpose registry (RFC 6890 and its updates), and multicast. */
const specialIpv4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]
/** Of global unicast (2000::/3), which alone is public: what is for protocols, documentation, or holds an IPv4 address (6to4, Teredo). */
const specialIpv6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20']

const blockList = (blocks: readonly string[], family: 'ipv4' | 'ipv6'): BlockList => {
  const list = new BlockList()
  for (const block of blocks) {
    const [address = '', bits] = block.split('/')
    list.addSubnet(address, Number(bits), family)
  }
  return list
}
const special4 = blockList(specialIpv4, 'ipv4')
const special6 = blockList(specialIpv6, 'ipv6')
const global6 = blockList(['2000::/3'], 'ipv6')

/** Whether an address is one that everybody can reach: no loopback, no private network, no metadata service. */
export function isPublic(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !special4.check(address, 'ipv4')
    case 6:
      return global6.check(address, 'ipv6') && !special6.check(address, 'ipv6')
    default:
      return false
  }
}

export function mayReach({ allowAddresses }: WebhookPolicy): AddressCheck {
  const allowed = addressCheck(allowAddresses)
  return (address) => isPublic(address) || allowed(address)
}

type Resolve = (hostname: string) => Promise<readonly { readonly address: string; readonly family: number }[]>

const resolveAll: Resolve = (hostname) =>
  new Promise((done, fail) => {
    resolve(hostname, { all: true, verbatim: true }, (error, addresses) => (error === null ? done(addresses) : fail(error)))
  })

/**
 * Resolves names for connections: what it gives is connected to as it is, so that a name can't lead elsewhere between the check and the connection. A name with one
 * address that isn't permitted is refused as a whole.
 */
export function checkedLookup(policy: WebhookPolicy, resolveName: Resolve = resolveAll): LookupFunction {
  const check = mayReach(policy)
  return (hostname, { all }, callback) => {
    resolveName(hostname).then(
      (addresses) => {
        const [first] = addresses
        if (first === undefined || addresses.some(({ address }) => !check(address)))
          return callback(new TargetError('the host leads to an address that is not public'), '')
        if (all === true)
          return callback(
            null,
            addresses.map(({ address, family }) => ({ address, family })),
          )
        callback(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    )
  }
}
