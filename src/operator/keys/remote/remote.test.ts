import { createPrivateKey, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createAuthority } from '../../../../test/cluster/certificates.ts'
import type { Address, UnsignedTransaction } from '../../../chains/ethereum/chain.ts'
import { addressOf } from '../../../chains/solana/addresses.ts'
import { encodeOffchainMessage } from '../../../chains/solana/challenge.ts'
import { wei } from '../../../lib/amounts.ts'
import { systemClock } from '../../../lib/clock.ts'
import { spkiOf } from '../../testing/fake-kms.ts'
import { createKeys } from '../keys.ts'
import { createRemoteSigners, type LiveRemoteSigners } from './remote-signers.ts'
import { parseRemoteSignersFile } from './signers-file.ts'

vi.setConfig({ testTimeout: 30_000 })

const never = new AbortController().signal
const key = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const account = privateKeyToAccount(key)
const address = account.address as Address
const canary = 'canary-7f3a'
const asked: UnsignedTransaction = {
  chainId: 560048,
  nonce: 7,
  to: '0x00000000219ab540356cBB839Cbe05303d7705Fa' as Address,
  data: '0x22895118',
  valueWei: wei(32n * 10n ** 18n),
  gas: 100_000n,
  maxFeePerGas: wei(30_000_000_000n),
  maxPriorityFeePerGas: wei(1_000_000_000n),
}
/** PKCS #8 of ed25519 (RFC 8410) without its 32 bytes. */
const seed = Buffer.alloc(32, 9)
const solanaKey = createPrivateKey({
  key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]),
  format: 'der',
  type: 'pkcs8',
})
const solanaAddress = addressOf(Buffer.from(solanaKey.export({ format: 'jwk' }).x ?? '', 'base64url'))

let dir: string
const servers: { close(): unknown; closeAllConnections?(): void }[] = []
const opened: LiveRemoteSigners[] = []
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'staking-remote-'))
})
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
  for (const server of servers.splice(0)) {
    server.closeAllConnections?.()
    server.close()
  }
  rmSync(dir, { recursive: true })
})

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}
async function serve(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
async function open(
  entry: object,
  { env = {}, timeoutMs = 5_000 }: { readonly env?: Record<string, string>; readonly timeoutMs?: number } = {},
) {
  const file = join(dir, 'remote-signers.yaml')
  writeFileSync(file, JSON.stringify({ signers: [{ name: 'hot', timeoutMs, ...entry }] }))
  const outcomes: string[] = []
  const remote = await createRemoteSigners(file, {
    clock: systemClock,
    log: { info: () => {}, error: () => {} },
    onCall: (name, operation, outcome) => void outcomes.push(`${name} ${operation} ${outcome}`),
    env,
  })
  opened.push(remote)
  return { ...createKeys({ dir: join(dir, 'keys'), remote }), outcomes, remote, file }
}
const errorOf = async (work: Promise<unknown>): Promise<{ readonly code?: string; readonly message: string }> => {
  const error = await work.then(
    () => new Error('it went well'),
    (caught: unknown) => caught,
  )
  const shown = inspect(error, { depth: 9 })
  // A URL, a header, a token or what the other side wrote never stands in a message.
  for (const hidden of [canary, '127.0.0.1:', 'http://']) expect(shown).not.toContain(hidden)
  return error as { readonly code?: string; readonly message: string }
}

interface Call {
  readonly id: number
  readonly method: string
  readonly params: readonly [Record<string, `0x${string}`>]
}
/** Web3Signer's eth1 mode, as far as a client sees it: the chain id is its own, whatever is asked for. It stands in for the real one, which can't be had here. */
const web3signer = (
  chainId: number,
  change: (raw: string, call: Call) => unknown = (raw) => raw,
): ((...of: Parameters<RequestListener>) => Promise<unknown>) => {
  return async (request, response) => {
    const call = JSON.parse(await bodyOf(request)) as Call
    const answer = (part: object) => response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, ...part }))
    if (call.method === 'eth_accounts') return answer({ result: [address.toLowerCase()] })
    const [{ from = '', to, data, value = '0x0', gas = '0x0', maxFeePerGas = '0x0', maxPriorityFeePerGas = '0x0', nonce = '0x0' }] =
      call.params
    if (from.toLowerCase() !== address.toLowerCase())
      return answer({ error: { code: -32000, message: `Signing from is not an unlocked account ${canary}` } })
    const raw = await account.signTransaction({
      type: 'eip1559',
      chainId,
      nonce: Number(nonce),
      ...(to === undefined ? {} : { to }),
      ...(data === undefined ? {} : { data }),
      value: BigInt(value),
      gas: BigInt(gas),
      maxFeePerGas: BigInt(maxFeePerGas),
      maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas),
    })
    return answer({ result: change(raw, call) })
  }
}
const signWith = (keys: Awaited<ReturnType<typeof open>>, transaction = asked, expected = address) =>
  keys.ethereum.signTransaction('hot', expected, transaction, never)

describe('Web3Signer', () => {
  test('signs what it was asked to, and gives the signature for the log', async () => {
    const keys = await open({ web3signer: { url: await serve(web3signer(560048)), address } })
    expect(await keys.ethereum.address('hot', never)).toBe(address)
    const signed = await signWith(keys)
    expect(signed.signature).toMatch(/^0x[0-9a-f]{130}$/)
    expect(signed.raw).toBe(
      await account.signTransaction({ type: 'eip1559', ...asked, value: asked.valueWei } as Parameters<typeof account.signTransaction>[0]),
    )
    await keys.ethereum.probe?.('hot', never)
    expect(keys.outcomes).toEqual(['hot probe ok', 'hot sign ok'])
  })

  test('as geth answers, with the transaction in words', async () => {
    const keys = await open({ web3signer: { url: await serve(web3signer(560048, (raw) => ({ raw, tx: {} }))), address } })
    expect((await signWith(keys)).hash).toMatch(/^0x/)
  })

  test.each<[string, RequestListener, string, RegExp]>([
    ['of another chain', web3signer(1), 'misbehaves', /hot has signed is another transaction than was asked for: chain id differs/],
    ['that answers with nothing', web3signer(560048, () => '0x'), 'unavailable', /is no transaction/],
    ['that answers with something', web3signer(560048, () => '0x02ab'), 'misbehaves', /is no signed EIP-1559 transaction/],
    ['that answers null', web3signer(560048, () => null), 'unavailable', /something that is no/],
  ])('%s is refused', async (_what, listener, code, says) => {
    const keys = await open({ web3signer: { url: await serve(listener), address } })
    // eth_accounts is answered rightly.
    const error = await errorOf(signWith(keys))
    expect([error.code, error.message]).toEqual([code, expect.stringMatching(says)])
  })

  describe('by https', () => {
    const [authority, stranger] = [createAuthority(), createAuthority('another')]
    async function secure(issuer: typeof authority): Promise<string> {
      const { cert, key: own } = issuer.issue({ names: ['web3signer.signing'] })
      const server = createHttpsServer({ cert, key: own }, web3signer(560048)).listen(0, '127.0.0.1')
      await once(server, 'listening')
      servers.push(server)
      return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    }
    const caFile = () => {
      writeFileSync(join(dir, 'ca.crt'), authority.cert)
      return join(dir, 'ca.crt')
    }
    test('is asked where its certificate is of the named authority, and has its name', async () => {
      const url = await secure(authority)
      for (const serverName of ['web3signer.signing', undefined]) {
        const keys = await open({ web3signer: { url, address, tls: { caFile: caFile(), ...(serverName && { serverName }) } } })
        expect((await signWith(keys)).hash).toMatch(/^0x/)
      }
    })
    test.each([
      { what: 'of another name', issuer: authority, serverName: 'web3signer.elsewhere', env: undefined },
      { what: 'of another authority', issuer: stranger, serverName: undefined, env: undefined },
      { what: 'of another name, though the environment would take any', issuer: authority, serverName: 'web3signer.elsewhere', env: '0' },
      { what: 'of another authority, though the environment would take any', issuer: stranger, serverName: undefined, env: '0' },
    ])('one $what is asked nothing', async ({ issuer, serverName, env }) => {
      if (env !== undefined) vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', env)
      try {
        const url = await secure(issuer)
        const keys = await open({ web3signer: { url, address, tls: { caFile: caFile(), ...(serverName && { serverName }) } } })
        const error = await errorOf(signWith(keys))
        expect([error.code, error.message]).toEqual(['unavailable', expect.stringMatching(/cannot be reached \([A-Z_]+\)/)])
      } finally {
        vi.unstubAllEnvs()
      }
    })
  })

  const answering = (text: (id: number) => string, status = 200): RequestListener => {
    return async (request, response) => {
      const { id } = JSON.parse(await bodyOf(request)) as Call
      response
        .writeHead(status, { 'content-type': 'application/json', ...(status === 302 ? { location: '/elsewhere' } : {}) })
        .end(text(id))
    }
  }
  test.each<[string, RequestListener, string, RegExp]>([
    [
      'an account that is not unlocked',
      answering((id) => `{"id":${id},"error":{"code":-32000,"message":"${canary}"}}`),
      'refused',
      /error -32000/,
    ],
    ['an error of its own', answering((id) => `{"id":${id},"error":{"code":-32603,"message":"${canary}"}}`), 'unavailable', /error -32603/],
    ['the answer to another question', answering((id) => `{"id":${id + 1},"result":["${address}"]}`), 'unavailable', /no answer to it/],
    ['two answers', answering((id) => `{"id":${id},"result":["${address}"]}{"id":${id},"result":[]}`), 'unavailable', /not its protocol/],
    ['a page', answering(() => `<html>${canary}</html>`), 'unavailable', /not its protocol/],
    ['a redirect', answering(() => '', 302), 'unavailable', /answered 302/],
    ['401', answering(() => canary, 401), 'refused', /401/],
    ['403', answering(() => canary, 403), 'refused', /403/],
    ['429', answering(() => canary, 429), 'unavailable', /429/],
    ['503', answering(() => canary, 503), 'unavailable', /503/],
    ['too much', answering(() => canary.repeat(10_000)), 'unavailable', /more than 65536 bytes/],
    [
      'other accounts',
      answering((id) => `{"id":${id},"result":["0x70997970C51812dc3A010C7d01b50e0d17dc79C8"]}`),
      'refused',
      /has no key of 0xf39F/,
    ],
  ])('answers %s: said, and nothing of it is quoted', async (_what, listener, code, says) => {
    const keys = await open({ web3signer: { url: await serve(listener), address } })
    const error = await errorOf(signWith(keys))
    expect([error.code, error.message]).toEqual([code, expect.stringMatching(says)])
  })

  test('that is not there is a wait; then it is left alone, and asked again', async () => {
    const keys = await open({ web3signer: { url: 'http://127.0.0.1:1', address } })
    expect(await errorOf(signWith(keys))).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/cannot be reached \(ECONNREFUSED\)/),
    })
    expect(await errorOf(signWith(keys))).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/cannot be reached \(ECONNREFUSED\)/),
    })
    expect(keys.outcomes).toEqual(['hot probe unavailable', 'hot probe left-alone'])
  })

  test('that answers late is not waited for, and its late answer is nobody’s', async () => {
    let isLate = true
    const listener = web3signer(560048)
    const late: Promise<unknown>[] = []
    const url = await serve(async (request, response) => {
      const answer = isLate ? systemClock.sleep(2_000, never).then(() => listener(request, response)) : listener(request, response)
      // Who has asked may be gone by then.
      if (isLate) late.push(answer.catch(() => undefined))
      await answer.catch(() => undefined)
    })
    const keys = await open({ web3signer: { url, address } }, { timeoutMs: 1_500 })
    expect(await errorOf(signWith(keys))).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/did not answer within 1500 ms/),
    })
    isLate = false
    await Promise.all(late)
    await systemClock.sleep(1_100, never)
    expect((await signWith(keys, { ...asked, nonce: 8 })).hash).toMatch(/^0x/)
  })

  test('that answers twice: the second answer is not taken for that of the next question', async () => {
    const first = await account.signTransaction({ type: 'eip1559', ...asked, value: asked.valueWei } as Parameters<
      typeof account.signTransaction
    >[0])
    let id = 0
    const server = createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (data) => {
        const call = JSON.parse(String(data).split('\r\n\r\n').at(-1) ?? '{}') as Call
        id = call.id
        const result = call.method === 'eth_accounts' ? [address] : first
        const text = (one: number) => {
          const body = JSON.stringify({ jsonrpc: '2.0', id: one, result })
          return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
        }
        // The second with the id of the next question.
        socket.write(text(id) + text(id + 1))
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    servers.push(server)
    const keys = await open({ web3signer: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, address } })
    for (const nonce of [7, 8]) {
      const found = await signWith(keys, { ...asked, nonce }).then(
        ({ raw }) => raw,
        (error: { readonly code: string }) => error.code,
      )
      // For nonce 7 it is the right one, if the connection stood; never for nonce 8.
      expect(nonce === 7 ? [first, 'unavailable'] : ['misbehaves', 'unavailable']).toContain(found)
    }
  })

  test('of another address than the signer declares signs nothing', async () => {
    const keys = await open({ web3signer: { url: await serve(web3signer(560048)), address } })
    const other = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' as Address
    expect(await errorOf(signWith(keys, asked, other))).toMatchObject({ code: 'address-mismatch' })
    expect(keys.outcomes).toEqual(['hot probe ok'])
  })
})

describe('AWS KMS', () => {
  const awsKms = (endpoint: string) => ({ awsKms: { keyId: 'alias/hot', region: 'eu-central-1', endpoint } })
  const fixed = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: canary }
  const publicKey = (response: Parameters<RequestListener>[1]) =>
    response.end(JSON.stringify({ PublicKey: Buffer.from(spkiOf(key)).toString('base64'), KeyUsage: 'SIGN_VERIFY' }))

  test('is asked with a signature of version 4, of the role’s credentials by a web identity', async () => {
    const tokenFile = join(dir, 'token')
    writeFileSync(tokenFile, `${canary}.web.identity\n`)
    const seen: string[] = []
    const sts = await serve(async (request, response) => {
      const body = new URLSearchParams(await bodyOf(request))
      seen.push(`${body.get('Action')} ${body.get('RoleArn')} ${body.get('WebIdentityToken')}`)
      response.end(
        `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>${canary}</SecretAccessKey><SessionToken>session</SessionToken><Expiration>${new Date(Date.now() + 3_600_000).toISOString()}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
      )
    })
    const kms = await serve((request, response) => {
      const { authorization = '', 'x-amz-security-token': session } = request.headers
      seen.push(
        `${request.headers['x-amz-target']} ${authorization.replace(/\/\d{8}\//, '/DATE/').replace(/[0-9a-f]{64}/, 'HEX')} ${session}`,
      )
      publicKey(response)
    })
    const keys = await open(awsKms(kms), {
      env: { AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile, AWS_ROLE_ARN: 'arn:aws:iam::1:role/staking', AWS_ENDPOINT_URL_STS: sts },
    })
    expect(await keys.ethereum.address('hot', never)).toBe(address)
    expect(seen).toEqual([
      `AssumeRoleWithWebIdentity arn:aws:iam::1:role/staking ${canary}.web.identity`,
      'TrentService.GetPublicKey AWS4-HMAC-SHA256 Credential=ASIA1/DATE/eu-central-1/kms/aws4_request, SignedHeaders=host;x-amz-date;x-amz-security-token;x-amz-target, Signature=HEX session',
    ])
  })

  test('by the agent of EKS Pod Identity, and its credentials are renewed before they end', async () => {
    const tokenFile = join(dir, 'token')
    writeFileSync(tokenFile, 'pod-identity-token')
    let count = 0
    const agent = await serve((request, response) => {
      count += 1
      expect(request.headers.authorization).toBe('pod-identity-token')
      response.end(
        JSON.stringify({
          AccessKeyId: `ASIA${count}`,
          SecretAccessKey: canary,
          Token: 't',
          // Within five minutes of its end.
          Expiration: new Date(Date.now() + 60_000).toISOString(),
        }),
      )
    })
    const used: string[] = []
    const kms = await serve((request, response) => {
      used.push(/Credential=(\w+)/.exec(request.headers.authorization ?? '')?.[1] ?? '')
      publicKey(response)
    })
    const keys = await open(awsKms(kms), {
      env: { AWS_CONTAINER_CREDENTIALS_FULL_URI: agent, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile },
    })
    await keys.ethereum.address('hot', never)
    await errorOf(signWith(keys))
    expect(used).toEqual(['ASIA1', 'ASIA2'])
  })

  test.each<[string, Record<string, string>, RegExp]>([
    ['none', {}, /has no AWS credentials: give the operator/],
    ['a token file that is not there', { AWS_WEB_IDENTITY_TOKEN_FILE: '/nowhere', AWS_ROLE_ARN: 'r' }, /\/nowhere holds no token/],
    ['an agent of another machine', { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://example.com/x' }, /neither https nor of this machine/],
  ])('%s: the credentials are a wait that is said', async (_what, env, says) => {
    const keys = await open(awsKms('http://127.0.0.1:1'), { env })
    expect(await errorOf(keys.ethereum.address('hot', never))).toMatchObject({ code: 'unavailable', message: expect.stringMatching(says) })
  })

  test.each<[string, number, string, string]>([
    ['AccessDeniedException', 400, 'refused', 'AccessDeniedException'],
    ['NotFoundException', 400, 'refused', 'NotFoundException'],
    ['DisabledException', 400, 'refused', 'DisabledException'],
    ['com.amazon#ThrottlingException', 400, 'unavailable', 'ThrottlingException'],
    ['KMSInternalException', 500, 'unavailable', 'KMSInternalException'],
    ['ExpiredTokenException', 400, 'unavailable', 'does not take the credentials'],
    [`${canary} <b>`, 400, 'refused', 'refused kms:GetPublicKey'],
  ])('answers %s: it is %i, %s', async (type, status, code, says) => {
    const kms = await serve((_request, response) => response.writeHead(status).end(JSON.stringify({ __type: type, message: canary })))
    const keys = await open(awsKms(kms), { env: fixed })
    expect(await errorOf(keys.ethereum.address('hot', never))).toMatchObject({ code, message: expect.stringContaining(says) })
  })

  test('a key of another curve is refused with what to make', async () => {
    // P-256, which is what KMS makes without a word.
    const p256 =
      'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q=='
    const kms = await serve((_request, response) => response.end(JSON.stringify({ PublicKey: p256 })))
    const keys = await open(awsKms(kms), { env: fixed })
    expect(await errorOf(keys.ethereum.address('hot', never))).toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/ECC_SECG_P256K1/),
    })
  })
})

describe('Transit', () => {
  interface Vault {
    readonly url: string
    readonly seen: string[]
    token: string
    signature: (input: Buffer) => string
    status: number
  }
  async function vault(): Promise<Vault> {
    const state: Omit<Vault, 'url'> & { url?: string } = {
      seen: [],
      token: 'first',
      signature: (input) => `vault:v1:${sign(null, input, solanaKey).toString('base64')}`,
      status: 200,
    }
    state.url = await serve(async (request, response) => {
      const body = JSON.parse(await bodyOf(request)) as {
        readonly role?: string
        readonly jwt?: string
        readonly input?: string
        readonly key_version?: number
      }
      const token = request.headers['x-vault-token']
      state.seen.push(`${request.method} ${request.url} ${body.role ?? body.key_version} ${token ?? body.jwt}`)
      if (request.url?.endsWith('/login'))
        return response.end(JSON.stringify({ auth: { client_token: state.token, lease_duration: 3_600 } }))
      if (token !== state.token) return response.writeHead(403).end(JSON.stringify({ errors: [`permission denied ${canary}`] }))
      if (state.status !== 200) return response.writeHead(state.status).end(JSON.stringify({ errors: [canary] }))
      return response.end(JSON.stringify({ data: { signature: state.signature(Buffer.from(body.input ?? '', 'base64')) } }))
    })
    return state as Vault
  }
  const transit = (url: string, auth: object) => ({ transit: { url, key: 'staker', address: solanaAddress, auth } })
  const text = 'hello'
  const challenge = (keys: Awaited<ReturnType<typeof open>>) => keys.solana.signOffchainMessage('hot', solanaAddress, text, never)

  test('logs in with the token of the service account, signs, and logs in again where the token was revoked', async () => {
    const server = await vault()
    const tokenFile = join(dir, 'jwt')
    writeFileSync(tokenFile, 'projected\n')
    const keys = await open(transit(server.url, { kubernetes: { role: 'staking', tokenFile } }))
    await challenge(keys)
    server.token = 'second'
    await challenge(keys)
    await keys.solana.probe?.('hot', never)
    expect(server.seen).toEqual([
      'POST /v1/auth/kubernetes/login staking projected',
      'POST /v1/transit/sign/staker 1 first',
      'POST /v1/transit/sign/staker 1 first',
      'POST /v1/auth/kubernetes/login staking projected',
      'POST /v1/transit/sign/staker 1 second',
    ])
  })

  test('a login whose answer comes byte by byte and never ends is given up; the next one is another', async () => {
    const server = await vault()
    let isSlow = true
    const dripping = await serve((request, response) => {
      if (!isSlow) return void response.writeHead(307, { location: server.url }).end()
      response.writeHead(200, { 'content-type': 'application/json' })
      const drip = setInterval(() => response.write(' '), 50)
      response.once('close', () => clearInterval(drip))
      request.resume()
    })
    const tokenFile = join(dir, 'jwt')
    writeFileSync(tokenFile, 'projected')
    const keys = await open(transit(dripping, { kubernetes: { role: 'staking', tokenFile } }), { timeoutMs: 1_000 })
    expect(await errorOf(challenge(keys))).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/within 1000 ms/) })
    isSlow = false
    await systemClock.sleep(1_500, never)
    // Nor is its redirect followed, with the token of the service account.
    expect(await errorOf(challenge(keys))).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/answered 307/) })
    expect(server.seen).toEqual([])
  })

  test('asked whether it can sign, it signs what no cluster takes for a transaction', async () => {
    const server = await vault()
    writeFileSync(join(dir, 'token'), 'first')
    const inputs: Buffer[] = []
    const { signature } = server
    server.signature = (input) => {
      inputs.push(input)
      return signature(input)
    }
    const keys = await open(transit(server.url, { tokenFile: join(dir, 'token') }))
    await keys.solana.probe?.('hot', never)
    await keys.solana.probe?.('hot', never)
    expect(inputs.map((input) => input.subarray(0, 16))).toEqual([Buffer.from(encodeOffchainMessage(text)).subarray(0, 16)])
    expect(inputs[0]?.toString('latin1')).toContain('This moves nothing')
  })

  test.each<[string, (server: Vault) => void, string, RegExp]>([
    [
      'of another key',
      (server) => Object.assign(server, { signature: () => `vault:v1:${Buffer.alloc(64, 1).toString('base64')}` }),
      'misbehaves',
      /is not signed by the key of/,
    ],
    [
      'over something else',
      (server) => Object.assign(server, { signature: () => `vault:v1:${sign(null, Buffer.from('other'), solanaKey).toString('base64')}` }),
      'misbehaves',
      /is not signed by the key of/,
    ],
    ['that is none', (server) => Object.assign(server, { signature: () => canary }), 'misbehaves', /is not signed by the key of/],
    ['in vain: 403', (server) => Object.assign(server, { token: 'revoked' }), 'refused', /refused to sign with transit\/staker \(403\)/],
    ['in vain: 404', (server) => Object.assign(server, { status: 404 }), 'refused', /\(404\)/],
    ['in vain: sealed', (server) => Object.assign(server, { status: 503 }), 'unavailable', /answered 503 \(sealed, or starting\)/],
    ['in vain: a standby', (server) => Object.assign(server, { status: 473 }), 'unavailable', /answered 473/],
  ])('a signature %s is refused', async (_what, change, code, says) => {
    const server = await vault()
    writeFileSync(join(dir, 'token'), 'first')
    change(server)
    const keys = await open(transit(server.url, { tokenFile: join(dir, 'token') }))
    expect(await errorOf(challenge(keys))).toMatchObject({ code, message: expect.stringMatching(says) })
  })
})

describe('the file of remote signers', () => {
  const entry = { name: 'hot', web3signer: { url: 'https://web3signer.signing:9000', address } }
  const parsed = (...signers: readonly object[]) => parseRemoteSignersFile(JSON.stringify({ signers }), 'file')

  test('has a name, a time-out and one kind for each', () => {
    expect(parsed(entry)).toMatchObject([{ name: 'hot', timeoutMs: 5_000 }])
    expect(parsed()).toEqual([])
  })

  test('an address that stands there without quotes is a text, as Helm writes it', () => {
    const yaml = `signers:\n- name: hot\n  web3signer:\n    address: ${address}\n    url: https://web3signer.signing:9000\n`
    expect(parseRemoteSignersFile(yaml, 'file')).toEqual(parsed(entry))
  })

  test.each<[string, readonly object[], RegExp]>([
    [
      'plain http',
      [{ ...entry, web3signer: { address, url: `http://${canary}.example` } }],
      /signers\.0\.web3signer\.url: must be an https URL/,
    ],
    ['a password in the URL', [{ ...entry, web3signer: { address, url: `https://u:${canary}@h` } }], /must have no user, password/],
    ['a file URL', [{ ...entry, web3signer: { address, url: 'file:///etc/passwd' } }], /must be an https URL/],
    ['no address', [{ ...entry, web3signer: { url: 'https://h' } }], /address/],
    [
      'an address with a wrong checksum',
      [{ ...entry, web3signer: { url: 'https://h', address: address.replace('f', 'F') } }],
      /must be an Ethereum address/,
    ],
    ['two kinds', [{ ...entry, awsKms: { keyId: 'k' } }], /must have one of web3signer, awsKms and transit/],
    ['no kind', [{ name: 'hot' }], /must have one of/],
    ['a name twice', [entry, entry], /the signer hot is there twice/],
    ['a name that is no keyName', [{ ...entry, name: '../hot' }], /signers\.0\.name/],
    ['a field that nobody knows', [{ ...entry, insecure: true }], /insecure/],
    ['half of a pair', [{ ...entry, web3signer: { ...entry.web3signer, tls: { certFile: '/c' } } }], /certFile and keyFile go together/],
    [
      'a path that leaves its mount',
      [{ name: 's', transit: { url: 'https://h', key: 'k', mount: 'a/../sys', address: solanaAddress, auth: { tokenFile: '/t' } } }],
      /mount/,
    ],
    [
      'two ways to log in',
      [
        {
          name: 's',
          transit: { url: 'https://h', key: 'k', address: solanaAddress, auth: { tokenFile: '/t', kubernetes: { role: 'r' } } },
        },
      ],
      /auth/,
    ],
  ])('%s is refused, without its value', (_what, signers, says) => {
    expect(() => parsed(...signers)).toThrow(says)
    expect(() => parsed(...signers)).not.toThrow(canary)
  })

  test('is followed: a signer comes, changes and goes; a file that can’t be used changes nothing', { timeout: 90_000 }, async () => {
    const keys = await open({ web3signer: { url: await serve(web3signer(560048)), address } })
    const stop = new AbortController()
    const changes: string[] = []
    const watching = keys.remote.watch(() => void changes.push(keys.remote.names().join(' ')), stop.signal)
    writeFileSync(keys.file, JSON.stringify({ signers: [entry, { ...entry, name: 'cold' }] }))
    await vi.waitFor(() => expect(changes).toEqual(['hot cold']), 30_000)
    writeFileSync(keys.file, '{')
    await systemClock.sleep(2_500, never)
    expect(keys.remote.names()).toEqual(['hot', 'cold'])
    writeFileSync(keys.file, JSON.stringify({ signers: [] }))
    await vi.waitFor(() => expect(changes).toEqual(['hot cold', '']), 30_000)
    expect(await errorOf(keys.ethereum.address('hot', never))).toMatchObject({ code: 'missing' })
    stop.abort()
    await watching
  })
})

test('a name that is mounted as well is not guessed at; one of another chain is said', async () => {
  const keys = await open({ web3signer: { url: await serve(web3signer(560048)), address } })
  expect(await errorOf(keys.solana.address('hot', never))).toMatchObject({
    code: 'malformed',
    message: expect.stringMatching(/signs for Ethereum/),
  })
  const { mkdirSync } = await import('node:fs')
  mkdirSync(join(dir, 'keys', 'hot'), { recursive: true })
  expect(await errorOf(keys.ethereum.address('hot', never))).toMatchObject({
    code: 'malformed',
    message: expect.stringMatching(/is there twice/),
  })
})
