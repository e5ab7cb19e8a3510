import { createPublicKey } from 'node:crypto'
import { AwsV4Signer } from 'aws4fetch'
import { type Hex as AnyHex, bytesToHex, hexToBytes } from 'viem'
import { publicKeyToAddress } from 'viem/accounts'
import { z } from 'zod'
import type { Address } from '../../../chains/ethereum/chain.ts'
import { parseDer, SignatureError, signatureBy } from '../../../chains/ethereum/signature.ts'
import { digestOf, withSignature } from '../../../chains/ethereum/signed-transaction.ts'
import type { Clock } from '../../../lib/clock.ts'
import { KeyError } from '../../ports.ts'
import type { AwsCredentialsSource } from './aws-credentials.ts'
import { amzDate } from './aws-time.ts'
import { isPassing, jsonOf, type RemoteHttp } from './remote-http.ts'
import type { EthereumSigner } from './remote-keys.ts'

const base64 = z.string().regex(/^[A-Za-z0-9+/]{1,4096}={0,2}$/)
const publicKeyAnswer = z.object({ PublicKey: base64, KeyUsage: z.string().optional() })
const signAnswer = z.object({ Signature: base64 })
const errorAnswer = z.object({ __type: z.string() })

/** Errors of KMS, and of AWS in front of it, that pass by themselves. */
const passing =
  /^(ThrottlingException|Throttling|LimitExceededException|DependencyTimeoutException|KMSInternalException|ServiceUnavailable\w*|InternalFailure|KeyUnavailableException)$/
/** The credentials are over: others are fetched. */
const expired = /^(ExpiredToken\w*|UnrecognizedClientException|InvalidClientTokenId)$/

/** Ethereum by a key of AWS KMS, ECC_SECG_P256K1. KMS signs the digest as it is; low `s` and recovery id are found here. Each signature is another one. */
export function createAwsKms({
  name,
  url,
  region,
  keyId,
  http,
  credentials,
  clock,
}: {
  readonly name: string
  readonly url: URL
  readonly region: string
  /** ARN, id or alias. */
  readonly keyId: string
  readonly http: RemoteHttp
  readonly credentials: AwsCredentialsSource
  readonly clock: Clock
}): EthereumSigner {
  async function call(action: 'Sign' | 'GetPublicKey', input: object, signal: AbortSignal): Promise<unknown> {
    const { accessKeyId, secretAccessKey, sessionToken } = await credentials.get(signal)
    const signed = await new AwsV4Signer({
      method: 'POST',
      url: url.href,
      headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `TrentService.${action}` },
      body: JSON.stringify({ KeyId: keyId, ...input }),
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      service: 'kms',
      region,
      datetime: amzDate(clock.now()),
    }).sign()
    const answer = await http.send(
      { method: 'POST', url: signed.url, headers: Object.fromEntries(signed.headers), body: String(signed.body) },
      signal,
    )
    if (answer.status === 200) return jsonOf(name, answer)
    throw failure(action, answer.status, answer.text, answer.retryAfterMs)
  }

  function failure(action: string, status: number, text: string, retryAfterMs: number | undefined): KeyError {
    const type = typeOf(text)
    const said = type === undefined ? `${status}` : `${status}, ${type}`
    if (type !== undefined && expired.test(type)) {
      credentials.forget()
      return new KeyError('unavailable', `AWS does not take the credentials of the remote signer ${name} (${said}). Others are fetched.`)
    }
    if (isPassing(status) || (type !== undefined && passing.test(type)))
      return new KeyError('unavailable', `AWS KMS failed for the remote signer ${name} (${said}). It is asked again.`, { retryAfterMs })
    return new KeyError(
      'refused',
      `AWS KMS refused kms:${action} for the remote signer ${name} (${said}): look at the key, its policy and state, at the operator's role, and at its clock.`,
    )
  }

  const unreadable = (action: string): KeyError =>
    new KeyError('unavailable', `AWS KMS answered kms:${action} for the remote signer ${name} with something else. It is asked again.`)

  return {
    async address(signal) {
      const found = publicKeyAnswer.safeParse(await call('GetPublicKey', {}, signal))
      if (!found.success) throw unreadable('GetPublicKey')
      return addressOf(name, Buffer.from(found.data.PublicKey, 'base64'))
    },

    async sign(transaction, from, signal) {
      const digest = digestOf(transaction)
      const input = {
        Message: Buffer.from(hexToBytes(digest)).toString('base64'),
        MessageType: 'DIGEST',
        SigningAlgorithm: 'ECDSA_SHA_256',
      }
      const found = signAnswer.safeParse(await call('Sign', input, signal))
      if (!found.success) throw unreadable('Sign')
      try {
        const signature = await signatureBy(from, digest, parseDer(Buffer.from(found.data.Signature, 'base64')))
        return (await withSignature(transaction, from, signature)).raw
      } catch (error) {
        if (!(error instanceof SignatureError)) throw error
        throw new SignatureError(error.message)
      }
    },
  }
}

function typeOf(text: string): string | undefined {
  try {
    const type = errorAnswer.parse(JSON.parse(text)).__type.split('#').at(-1) ?? ''
    return /^[A-Za-z]{1,64}$/.test(type) ? type : undefined
  } catch {
    return undefined
  }
}

/** The address of a public key in DER (SubjectPublicKeyInfo, RFC 5480). @throws KeyError `refused` for a key of another curve */
export function addressOf(name: string, spki: Uint8Array): Address {
  try {
    const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' })
    if (key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'secp256k1') {
      const { x = '', y = '' } = key.export({ format: 'jwk' })
      const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
      if (point.length === 65) return publicKeyToAddress(bytesToHex(point) as AnyHex) as Address
    }
  } catch {
    // Said below: OpenSSL's words say nothing more.
  }
  throw new KeyError(
    'refused',
    `The key of the remote signer ${name} is no key of secp256k1: make one with the key spec ECC_SECG_P256K1 and the usage SIGN_VERIFY.`,
  )
}
