import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keypair } from '@solana/web3.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Address } from '../../../src/chains/ethereum/chain.ts'
import { addressOf as solanaAddressOf } from '../../../src/chains/solana/addresses.ts'
import { addressOf } from '../../../src/operator/keys/remote/aws-kms.ts'
import { findCondition } from '../../../src/resources/conditions.ts'
import type { SolanaStake } from '../../../src/resources/solana-stake.ts'
import { type LocalKms, startLocalKms } from '../../cluster/local-kms.ts'
import { type OpenBao, startOpenBao } from '../../cluster/openbao.ts'
import { type Commands, type PageOptions, pageCommands } from '../../cluster/page-commands.ts'
import {
  applyAll,
  eventually,
  getSigner,
  getStake,
  namespace,
  signer,
  solanaSigner,
  solanaStake,
  stake,
  untilHolds,
} from '../../stack/resources.ts'
import { SOLANA_NETWORK, SOLANA_STAKER, SOLANA_WITHDRAWER, type Stack, startStack, writeSolanaKey } from '../../stack/stack.ts'
import { PATIENT_LEASE, recordOf, untilPaidOnce } from './harness.ts'

/**
 * Keys that others have: anvil behind mutual TLS as Web3Signer serves it, AWS KMS by local-kms, OpenBao's Transit with the Kubernetes login of this very
 * cluster and a role that may only sign. The operator is the real program.
 */
const AUDIENCE = 'vault'
let stack: Stack
let kms: LocalKms
let bao: OpenBao
let dir: string
const stopping = new AbortController()
const undo: (() => unknown)[] = []
const at = (file: string) => join(dir, file)
/** The commands of a page of docs/how-to, until the tests are over. */
async function open(name: string, options: Omit<PageOptions, 'page'> = {}): Promise<Commands> {
  const reader = await pageCommands(stack.cluster, { page: `docs/how-to/${name}.md`, ...options }, stopping.signal)
  undo.push(() => reader.stop())
  return reader
}
const addresses: { web3signer: Address; kms: Address; staker: string; withdrawer: string } = {} as never
let baoToken = ''

/** Certificates by OpenBao's own authority: a server's and a client's. */
async function issueCertificates(): Promise<void> {
  await bao.call('POST', 'sys/mounts/pki', { type: 'pki' })
  await bao.call('POST', 'pki/root/generate/internal', { common_name: 'signers', ttl: '24h' })
  await bao.call('POST', 'pki/roles/any', { allow_any_name: true, allow_ip_sans: true, max_ttl: '12h', key_type: 'ec', key_bits: 256 })
  for (const [name, more] of [
    ['server', { ip_sans: '127.0.0.1' }],
    ['client', {}],
  ] as const) {
    const { data } = await bao.call('POST', 'pki/issue/any', { common_name: `${name}.signing`, ...more })
    const { certificate, private_key, issuing_ca } = data as Record<string, string>
    for (const [file, text] of [
      [`${name}.crt`, certificate],
      [`${name}.key`, private_key],
      ['ca.crt', issuing_ca],
    ] as const)
      writeFileSync(at(file), `${text}\n`, { mode: 0o600 })
  }
}

/** Web3Signer's own place: what may ask shows a certificate, and nothing but its two methods is answered. anvil signs. */
async function serveAnvil(): Promise<string> {
  const server = createServer(
    {
      key: readFileSync(at('server.key')),
      cert: readFileSync(at('server.crt')),
      ca: readFileSync(at('ca.crt')),
      requestCert: true,
      rejectUnauthorized: true,
    },
    (request, response) => {
      const chunks: Buffer[] = []
      request
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', async () => {
          const body = Buffer.concat(chunks).toString()
          const { method } = JSON.parse(body) as { readonly method: string }
          if (method !== 'eth_accounts' && method !== 'eth_signTransaction') return response.writeHead(404).end()
          const answer = await fetch(stack.anvil.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
          return response.writeHead(answer.status).end(await answer.text())
        })
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  undo.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A token of a service account for an audience, as a projected volume gives it. */
async function projectedToken(name: string, audiences?: readonly string[]): Promise<string> {
  const { status, body } = await stack.cluster.request({
    method: 'POST',
    path: `/api/v1/namespaces/staking-system/serviceaccounts/${name}/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { ...(audiences === undefined ? {} : { audiences }) } },
  })
  if (status !== 201) throw new Error(`no token of ${name}: ${status} ${JSON.stringify(body)}`)
  return (body as { readonly status: { readonly token: string } }).status.token
}

/** Transit keys, a policy that may only sign, and the login of the operator's service account by this cluster. */
async function prepareTransit(): Promise<void> {
  const reviewer = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'openbao-reviewer' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:auth-delegator' },
    subjects: [{ kind: 'ServiceAccount', name: 'openbao', namespace: 'staking-system' }],
  }
  await applyAll(stack.cluster, [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'openbao', namespace: 'staking-system' } },
    reviewer,
  ])
  const heading = 'Vault or OpenBao'
  // What it finds by itself in a pod, a server elsewhere is told, as the page says.
  const told = `kubernetes_ca_cert=@cluster-ca.pem token_reviewer_jwt=${await projectedToken('openbao')} disable_local_ca_jwt=true`
  const page = await open('remote-signers', {
    env: bao.env,
    path: [bao.bin],
    placeholders: { 'https://kubernetes.default.svc': `${stack.cluster.url} ${told}` },
  })
  page.file('cluster-ca.pem', stack.cluster.caPem)
  type Keys = Record<string, { readonly public_key: string }>
  const addressIn = (keys: Keys) => solanaAddressOf(Buffer.from(keys['1']?.public_key ?? '', 'base64'))
  const printed = await page.run(heading, 1)
  addresses.staker = addressIn(JSON.parse(printed.slice(printed.indexOf('{'))) as Keys)
  // The other authority's, in the same way.
  await bao.call('POST', 'transit/keys/withdrawer', { type: 'ed25519' })
  const { data } = await bao.call('GET', 'transit/keys/withdrawer')
  addresses.withdrawer = addressIn((data as { readonly keys: Keys }).keys)
  const policy = readFileSync(page.save(heading, 'staking-signs.hcl', 'hcl'), 'utf8')
  page.file('staking-signs.hcl', `${policy}\n${policy.replace('sign/staker', 'sign/withdrawer')}\n`)
  for (const nth of [2, 3]) await page.run(heading, nth)
  writeFileSync(at('vault-token'), await projectedToken('staking-operator', [AUDIENCE]), { mode: 0o600 })
  // The API server hears of the binding a moment after it was made, and refuses the reviewer until then.
  const { auth } = await eventually(
    'it may log in',
    () => bao.call('POST', 'auth/kubernetes/login', { role: 'staking-operator', jwt: readFileSync(at('vault-token'), 'utf8') }),
    () => true,
  )
  baoToken = (auth as { readonly client_token: string }).client_token
}

async function prepareKms(): Promise<string> {
  const { KeyMetadata } = await kms.call('CreateKey', { KeySpec: 'ECC_SECG_P256K1', KeyUsage: 'SIGN_VERIFY' })
  const { Arn } = KeyMetadata as { readonly Arn: string }
  const { PublicKey } = await kms.call('GetPublicKey', { KeyId: Arn })
  addresses.kms = addressOf('kms', Buffer.from(String(PublicKey), 'base64'))
  return Arn
}

const ofTeam = { allowedNamespaces: { names: ['team-a'] } }

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'staking-remote-'))
  const env = { STAKING_REMOTE_SIGNERS: at('remote-signers.yaml') }
  ;[stack, kms, bao] = await Promise.all([
    startStack({
      anvil: { mining: 0.3, accounts: 6 },
      solana: {},
      startOperator: false,
      operatorArgs: [...PATIENT_LEASE, '--stall-recheck', '1s', '--observe-activating', '1s'],
      operatorEnv: { ...env, AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' },
    }),
    startLocalKms(stopping.signal),
    startOpenBao(stopping.signal),
  ])
  await issueCertificates()
  const [url, keyId] = await Promise.all([serveAnvil(), prepareKms(), prepareTransit()])
  addresses.web3signer = stack.anvil.accounts[2]?.address as Address
  await stack.anvil.setBalance(addresses.kms, 100n * 10n ** 18n)
  for (const address of [addresses.staker, addresses.withdrawer]) stack.solana.fund(address, 100_000_000_000n)
  const tls = { caFile: at('ca.crt'), certFile: at('client.crt'), keyFile: at('client.key') }
  const transit = (key: 'staker' | 'withdrawer') => ({
    transit: {
      url: bao.url,
      key,
      address: addresses[key],
      auth: { kubernetes: { role: 'staking-operator', tokenFile: at('vault-token') } },
      tls: { caFile: bao.caFile },
    },
  })
  writeFileSync(
    at('remote-signers.yaml'),
    JSON.stringify({
      signers: [
        { name: 'hot', web3signer: { url, address: addresses.web3signer, tls } },
        { name: 'cloud', awsKms: { keyId, region: kms.region, endpoint: kms.url } },
        { name: 'bao-staker', ...transit('staker') },
        { name: 'bao-withdrawer', ...transit('withdrawer') },
      ],
    }),
  )
  await stack.operator.start()
  await applyAll(stack.cluster, [
    signer({ keyName: 'hot', address: addresses.web3signer }, 'hot'),
    signer({ keyName: 'cloud', address: addresses.kms }, 'cloud'),
    namespace('team-a'),
    solanaSigner(SOLANA_STAKER, { keyName: 'bao-staker', address: addresses.staker, policy: ofTeam }),
    solanaSigner(SOLANA_WITHDRAWER, { keyName: 'bao-withdrawer', address: addresses.withdrawer, policy: ofTeam }),
  ])
}, 300_000)
afterAll(async () => {
  stopping.abort()
  for (const step of undo) step()
  await Promise.all([stack?.stop(), kms?.stop(), bao?.stop()])
  rmSync(dir, { recursive: true, force: true })
})

test.each([
  ['hot', 'eth_signTransaction behind mutual TLS'],
  ['cloud', 'AWS KMS'],
])('a stake is paid by the signer %s: %s', async (name) => {
  await applyAll(stack.cluster, [stake(`by-${name}`, { signer: name })])
  await untilPaidOnce(stack, `by-${name}`)
  const { status } = await recordOf(stack.cluster, `by-${name}`)
  expect(status?.attempts).toHaveLength(1)
  expect(status?.attempts?.[0]?.signature).toMatch(/^0x[0-9a-f]{128}0[01]$/)
  await untilHolds(
    'its key is valid',
    () => getSigner(stack.cluster, name),
    (signer) => expect(findCondition(signer.status?.conditions, 'KeyValid')?.status).toBe('True'),
  )
})

describe('OpenBao', () => {
  const get = async (name: string) =>
    JSON.parse(await stack.cluster.kubectlOk(['get', 'solanastake', name, '-n', 'team-a', '-o', 'json'])) as SolanaStake
  const until = (name: string, what: string, holds: (found: SolanaStake) => boolean) =>
    eventually(`${name} ${what}`, () => get(name), holds, 60_000)
  const isReady = ({ status }: SolanaStake) => findCondition(status?.conditions, 'Ready')?.status === 'True'
  const isActive = (found: SolanaStake) => isReady(found) && found.status?.protocol?.status === 'Active'

  test('a Solana stake is delegated, deactivated and withdrawn with two keys of Transit', async () => {
    const page = await open('stake-solana', {
      placeholders: { 'mainnet-beta': SOLANA_NETWORK, BeYaKYHyc2gCtPJHK4QGMQPHgXaQRxDzt3X8zv5xUmdf: stack.solana.validator.voteAccount },
    })
    for (const name of ['staker.json', 'withdrawer.json']) page.file(name, '[]')
    const manifest = readFileSync(page.save('Stake', 'stake.yaml'), 'utf8')
    await applyAll(stack.cluster, [solanaStake('two', {}, { namespace: 'team-a' })])
    await stack.cluster.apply(`${manifest}\n  suspend: true\n`)
    const required = await eventually(
      'it says which keys it will need',
      () => page.run('A key that is kept offline, or lost'),
      (text) => text !== '',
    )
    expect(JSON.parse(required)).toEqual([
      { authority: 'Withdraw', keyName: 'bao-withdrawer', signer: SOLANA_WITHDRAWER, step: 'Stake' },
      { authority: 'Stake', keyName: 'bao-staker', signer: SOLANA_STAKER, step: 'Stake' },
    ])
    await stack.cluster.kubectlOk(['patch', 'solstake', 'one', '-n', 'team-a', '--type=merge', '-p', '{"spec":{"suspend":false}}'])
    for (const name of ['one', 'two'])
      await until(name, 'is paid', ({ status }) => status?.protocol?.status === 'Activating' || status?.protocol?.status === 'Active')
    await stack.solana.nextEpoch()
    for (const name of ['one', 'two']) await until(name, 'is active', isActive)
    await page.run('Two keys')
    const secrets = await stack.cluster.kubectlOk(['-n', 'staking-system', 'get', 'secrets', '-o', 'name'])
    for (const name of ['solana-staker-key', 'solana-withdrawer-key']) expect(secrets).toContain(name)
    const back = page.run('Get it back')
    await until(
      'one',
      'is deactivated',
      ({ status }) => status?.protocol?.status === 'Deactivating' || status?.protocol?.status === 'Inactive',
    )
    await stack.solana.nextEpoch()
    expect(await back).toMatch(/condition met/)
    await until('one', 'is withdrawn', (found) => isReady(found) && found.status?.phase === 'Withdrawn')
  })

  test('both authorities of a stake are handed over to mounted keys, by the commands of the page', async () => {
    const fresh = { 'next-staker': Keypair.generate(), 'next-withdrawer': Keypair.generate() }
    for (const [name, keypair] of Object.entries(fresh)) writeSolanaKey(stack.keysDir, name, keypair)
    const addressOfNew = (name: keyof typeof fresh) => fresh[name].publicKey.toBase58()
    await applyAll(
      stack.cluster,
      Object.keys(fresh).map((name) => ({
        ...solanaSigner(SOLANA_STAKER, { keyName: name, address: addressOfNew(name as keyof typeof fresh), policy: ofTeam }),
        metadata: { name },
      })),
    )
    const page = await open('rotate-keys', {
      placeholders: {
        ...{
          STAKE: 'two',
          'STAKE-2026': 'two-2026',
          NAMESPACE: 'team-a',
          'OLD-STAKER': SOLANA_STAKER,
          'OLD-WITHDRAWER': SOLANA_WITHDRAWER,
        },
        ...{ 'NEW-STAKER': 'next-staker', 'NEW-WITHDRAWER': 'next-withdrawer' },
        ...{ 'NEW-STAKER-ADDRESS': addressOfNew('next-staker'), 'NEW-WITHDRAWER-ADDRESS': addressOfNew('next-withdrawer') },
      },
    })
    page.save('Hand it over', 'hand-over.yaml')
    expect(await page.run('Hand it over')).toMatch(
      new RegExp(`Plan: 1 to create[\\s\\S]*condition met\n${addressOfNew('next-staker')} ${addressOfNew('next-withdrawer')}`),
    )
  })

  test('its token may sign with these keys, and nothing else', async () => {
    const input = { input: Buffer.from('hello').toString('base64') }
    expect(await bao.statusOf(baoToken, 'POST', 'transit/sign/staker', input)).toBe(200)
    for (const [method, path] of [
      ['GET', 'transit/keys/staker'],
      ['GET', 'transit/export/signing-key/staker'],
      ['POST', 'transit/keys/staker/rotate'],
      ['POST', 'transit/keys/other'],
      ['POST', 'auth/token/create'],
    ] as const)
      expect([path, await bao.statusOf(baoToken, method, path, method === 'POST' ? input : undefined)]).toEqual([path, 403])
  })
})

test('doctor asks each of them, and neither it nor the log shows a URL, a token or a key', async () => {
  const page = await open('remote-signers', {
    pod: {
      serviceConfig: '',
      doctorEnv: {
        ...kms.env,
        KUBECONFIG: stack.operatorKubeconfig,
        STAKING_NETWORKS: stack.networksFile,
        STAKING_KEYS_DIR: stack.keysDir,
        STAKING_REMOTE_SIGNERS: at('remote-signers.yaml'),
      },
    },
  })
  const stdout = await page.run('Keep keys with a remote signer')
  for (const name of ['hot', 'cloud', 'bao-staker', 'bao-withdrawer'])
    expect(stdout).toContain(`the remote signer ${name} answers, and has the key of`)
  const told = stdout + stack.logs()
  const client = readFileSync(at('client.key'), 'utf8').split('\n')[1] ?? 'none'
  for (const hidden of [bao.url, kms.url, baoToken, readFileSync(at('vault-token'), 'utf8'), client]) expect(told).not.toContain(hidden)
  const answer = await fetch(stack.operatorMetrics)
  expect(await answer.text()).toMatch(
    /staking_operator_remote_signer_request_duration_seconds_count\{[^}]*signer="cloud"[^}]*outcome="ok"\}/,
  )
})

test('the page puts the certificate of the operator into the Secret that the chart mounts', async () => {
  const page = await open('remote-signers')
  for (const [name, from] of [
    ['ca.crt', 'ca.crt'],
    ['tls.crt', 'client.crt'],
    ['tls.key', 'client.key'],
  ] as const)
    page.file(name, readFileSync(at(from), 'utf8'))
  expect(await page.run('Web3Signer', 2)).toContain('secret/web3signer-tls created')
})

test('a client certificate that nobody knows ends in a wait that says so; the right one goes on', async () => {
  const right = [readFileSync(at('client.crt')), readFileSync(at('client.key'))] as const
  const put = ([certificate, key]: readonly [Buffer, Buffer]) => {
    writeFileSync(at('client.crt'), certificate)
    writeFileSync(at('client.key'), key)
  }
  const { data } = await bao.call('POST', 'pki/issue/any', { common_name: 'client', ttl: '1s' })
  const { certificate, private_key } = data as Record<string, string>
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  put([Buffer.from(`${certificate}\n`), Buffer.from(`${private_key}\n`)])
  await applyAll(stack.cluster, [stake('waits', { signer: 'hot' })])
  await eventually(
    'it waits for the signer',
    () => getStake(stack.cluster, 'waits'),
    (found) => findCondition(found?.status?.conditions, 'Ready')?.reason === 'SignerUnavailable',
    60_000,
  )
  put(right)
  await untilPaidOnce(stack, 'waits', { timeoutMs: 90_000 })
})
