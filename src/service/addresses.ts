import { BlockList, isIP } from 'node:net'

/** Whether an address is one of those that are permitted. */
export type AddressCheck = (address: string) => boolean

/** An IP address, or a block of them such as 10.0.0.0/8. Not one of a zone (`fe80::1%eth0`): its name says something on one machine alone. */
export function isBlock(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || address.includes('%') || more.length > 0) return false
  return bits === undefined || (/^[0-9]{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

const familyOf = (address: string) => (isIP(address) === 4 ? 'ipv4' : 'ipv6')

/** The check of whoever may come from everywhere. */
export const anywhere: AddressCheck = () => true

/** @param ranges Addresses and blocks; undefined permits all, and a list that names none permits none. */
export function addressCheck(ranges: readonly string[] | undefined): AddressCheck {
  if (ranges === undefined) return anywhere
  const list = new BlockList()
  for (const range of ranges.filter(isBlock)) {
    const [address = '', bits] = range.split('/')
    if (bits === undefined) list.addAddress(address, familyOf(address))
    else list.addSubnet(address, Number(bits), familyOf(address))
  }
  return (text) => {
    // A dual-stack socket shows IPv4 so.
    const address = /^::ffff:([0-9.]+)$/i.exec(text)?.[1] ?? text
    return isIP(address) !== 0 && list.check(address, familyOf(address))
  }
}
