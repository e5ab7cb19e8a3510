import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { ConfigError, systemCode } from '../../lib/config-error.ts'
import { Secret } from '../../lib/secret.ts'

/** PEM files: the certificate with the intermediate ones after it, and its private key. */
export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
}

/** A certificate and its key, of which it is known that TLS takes them. */
export interface Certificate {
  /** The server's own certificate and the intermediate ones, in PEM. */
  readonly chain: string
  readonly key: Secret
  /** Of the server's own certificate. */
  readonly names: string
  readonly validTo: Date
  /** SHA-256 of the server's own certificate, in hex with colons. */
  readonly fingerprint: string
}

/** @throws ConfigError in one line, which names the field and the file and quotes nothing of them */
export async function readCertificate({ certFile, keyFile }: CertificateFiles): Promise<Certificate> {
  const chain = await readPem('tls.certFile', certFile)
  const key = new Secret(await readPem('tls.keyFile', keyFile))
  const own = certificateOf(chain, certFile)
  if (!own.checkPrivateKey(privateKeyOf(key, keyFile)))
    throw new ConfigError(`tls.keyFile: ${keyFile} is not the key of the first certificate in ${certFile}`)
  const certificate: Certificate = {
    chain,
    key,
    names: own.subjectAltName ?? own.subject,
    validTo: endOf(own),
    fingerprint: own.fingerprint256,
  }
  try {
    createSecureContext(contextOf(certificate))
  } catch (error) {
    throw new ConfigError(`tls: ${certFile} and ${keyFile} are refused by the TLS library (${systemCode(error)})`)
  }
  return certificate
}

/** What a TLS server is given of a certificate, at its start and at each renewal: nothing older than TLS 1.2 is spoken. */
export const contextOf = ({ chain, key }: Certificate): SecureContextOptions => ({
  cert: chain,
  key: key.reveal(),
  minVersion: 'TLSv1.2',
})

async function readPem(field: string, file: string): Promise<string> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    throw new ConfigError(`${field}: ${file} cannot be read (${systemCode(error)})`)
  }
  if (text.trim() === '') throw new ConfigError(`${field}: ${file} is empty`)
  return text
}

/** By its text, which says so where the time is none. Node's `validToDate` is then whatever stood in memory: mostly no date, and now and then some date. */
const endOf = ({ validTo }: X509Certificate): Date => new Date(validTo)

function certificateOf(chain: string, file: string): X509Certificate {
  // The class takes other forms as well, which a TLS server doesn't.
  if (/-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----/.test(chain)) {
    try {
      const own = new X509Certificate(chain)
      // It takes one whose time is none.
      if (!Number.isNaN(endOf(own).getTime())) return own
    } catch {
      // Said below.
    }
  }
  throw new ConfigError(`tls.certFile: ${file} holds no certificate in PEM, or one that is damaged`)
}

function privateKeyOf(key: Secret, file: string): KeyObject {
  try {
    return createPrivateKey(key.reveal())
  } catch {
    const why = /\bENCRYPTED\b/.test(key.reveal()) ? 'holds a key under a passphrase: it must have none' : 'holds no private key in PEM'
    throw new ConfigError(`tls.keyFile: ${file} ${why}`)
  }
}
