import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** A certificate with its key, in PEM. */
export interface Issued {
  readonly cert: string
  readonly key: string
}

export interface Authority {
  readonly cert: string
  /** A server's certificate for 127.0.0.1, localhost and `names`; good for a day unless `validTo` says otherwise. */
  issue(given?: { readonly names?: readonly string[]; readonly validTo?: Date }): Issued
}

const dayMs = 86_400_000

/** A certificate authority of a test's own, with P-256 keys. Node makes no certificates, so they are written here as RFC 5280 has them. */
export function createAuthority(name = 'test authority'): Authority {
  const own = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const until = () => new Date(Date.now() + dayMs)
  const cert = certificate({ subject: name, subjectKey: own.publicKey, issuer: name, issuerKey: own.privateKey, validTo: until() })
  return {
    cert,
    issue({ names = [], validTo = until() } = {}) {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const given = { subject: 'server', subjectKey: publicKey, issuer: name, issuerKey: own.privateKey, validTo }
      return {
        cert: certificate({ ...given, names: ['localhost', ...names] }),
        key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      }
    },
  }
}

const tlv = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const sequence = (...parts: readonly Uint8Array[]) => tlv(0x30, ...parts)
const oid = (hex: string) => tlv(0x06, Buffer.from(hex, 'hex'))
const utcTime = (date: Date) => tlv(0x17, Buffer.from(`${date.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`))
const nameOf = (text: string) => sequence(tlv(0x31, sequence(oid('550403'), tlv(0x0c, Buffer.from(text)))))
const extension = (id: string, value: Uint8Array) => sequence(oid(id), tlv(0x04, value))
const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))

/** With `names` a server's, without an authority's. */
function certificate(given: {
  readonly subject: string
  readonly subjectKey: KeyObject
  readonly issuer: string
  readonly issuerKey: KeyObject
  readonly validTo: Date
  readonly names?: readonly string[]
}): string {
  const { names } = given
  const extensions =
    names === undefined
      ? extension('551d13', sequence(tlv(0x01, Buffer.from([0xff]))))
      : extension('551d11', sequence(...names.map((one) => tlv(0x82, Buffer.from(one))), tlv(0x87, Buffer.from([127, 0, 0, 1]))))
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    nameOf(given.issuer),
    sequence(utcTime(new Date(given.validTo.getTime() - 2 * dayMs)), utcTime(given.validTo)),
    nameOf(given.subject),
    given.subjectKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(extensions)),
  )
  const signature = tlv(0x03, Buffer.from([0]), sign('sha256', body, given.issuerKey))
  const text = sequence(body, ecdsaWithSha256, signature).toString('base64').replace(/.{64}/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${text.trimEnd()}\n-----END CERTIFICATE-----\n`
}
