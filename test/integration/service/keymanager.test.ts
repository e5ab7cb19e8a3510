import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { systemClock } from '../../../src/lib/clock.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { createAdmin, serveAdmin } from '../../../src/service/admin.ts'
import { createKeymanager } from '../../../src/service/keymanager/client.ts'
import { type PushKeystoresOptions, pushKeystores } from '../../../src/service/keymanager/push.ts'
import { exportKeystores } from '../../../src/service/keystores.ts'
import { openStore } from '../../../src/service/store/database.ts'
import { pageCommands } from '../../cluster/page-commands.ts'
import { type FakeKeymanager, startFakeKeymanager } from './fake-keymanager.ts'
import { databases, networkConfig, seedHex, startService, type TestService } from './harness.ts'

const { both, stop } = databases('keymanager')
afterAll(stop)

const genesis = { genesis_time: '1000000', genesis_validators_root: `0x${'ab'.repeat(32)}`, genesis_fork_version: '0x10000910' }
const spec = {
  ...{ SECONDS_PER_SLOT: '12', SLOTS_PER_EPOCH: '32', SHARD_COMMITTEE_PERIOD: '256', MIN_VALIDATOR_WITHDRAWABILITY_DELAY: '256' },
  ...{ MAX_SEED_LOOKAHEAD: '4', MIN_ACTIVATION_BALANCE: '32000000000', MAX_EFFECTIVE_BALANCE_ELECTRA: '2048000000000' },
  ...{ PENDING_PARTIAL_WITHDRAWALS_LIMIT: '134217728', DEPOSIT_CHAIN_ID: '31337', CONFIG_NAME: 'devnet' },
  DEPOSIT_CONTRACT_ADDRESS: networkConfig().depositContractAddress,
}
/** Of a beacon node, what tells which network it is of. */
async function startGenesis() {
  const answers: Record<string, object> = {
    '/eth/v1/beacon/genesis': { data: genesis },
    '/eth/v1/config/deposit_contract': { data: { chain_id: '31337', address: networkConfig().depositContractAddress } },
    '/eth/v1/config/spec': { data: spec },
  }
  const server = createServer(({ url = '' }, response) => {
    const answer = answers[url]
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? {}))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

describe.each(both)('keystores that are pushed, with $database', ({ database: name, open }) => {
  let folder: string
  let service: TestService
  let closeAdmin: () => Promise<void> = async () => undefined
  let key: string
  let target: FakeKeymanager
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'staking-push-'))
    const given = await open()
    // On the embedded database the command goes through the service that has it open.
    const database = given.kind === 'embedded' ? ({ kind: 'embedded', dataDir: join(folder, 'data') } as const) : given
    service = await startService(await openStore(database))
    if (database.kind === 'embedded')
      closeAdmin = await serveAdmin(createAdmin({ store: service.store, clock: systemClock }), database.dataDir)
    writeFileSync(join(folder, 'seed'), seedHex)
    writeFileSync(join(folder, 'password'), 'correct horse battery')
    writeFileSync(
      join(folder, 'service.yaml'),
      stringify({
        database: database.kind === 'embedded' ? { dataDir: database.dataDir } : { url: database.url.reveal() },
        seedFile: join(folder, 'seed'),
        networks: [networkConfig()],
      }),
    )
    key = await service.key()
  })
  afterAll(async () => {
    await closeAdmin()
    await service?.close()
    await service?.store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  beforeEach(async () => {
    target = await startFakeKeymanager()
    writeFileSync(join(folder, 'token'), `# written by the client\n${target.token}\n`)
  })
  afterEach(() => target?.close())

  async function stake() {
    const { body } = await service.stake(key)
    return { path: `/v1/ethereum/stakes/${body.stakeId}`, pubkey: body.depositData.pubkey as string }
  }
  const push = (pubkeys: readonly string[], more: Partial<PushKeystoresOptions> = {}) =>
    pushKeystores({
      ...{ config: join(folder, 'service.yaml'), to: target.url, tokenFile: join(folder, 'token'), network: 'devnet', pubkeys },
      ...more,
    })
  const isProvisioned = async (path: string) => (await service.call('GET', path, { key })).body.keysProvisioned

  test('are given by the command of the page', async () => {
    const { pubkey, path } = await stake()
    const page = await pageCommands(
      undefined,
      {
        page: 'docs/how-to/run-the-service.md',
        placeholders: {
          ...{ hoodi: 'devnet', 'https://validator.example:7500': target.url, 'FEE-RECIPIENT': `0x${'fe'.repeat(20)}` },
          // Nothing is paid in this world.
          confirmed: 'awaiting_submission',
        },
      },
      AbortSignal.timeout(60_000),
    )
    try {
      for (const file of ['service.yaml', 'token']) page.file(file, readFileSync(join(folder, file), 'utf8'))
      expect(await page.run("The validators' keystores", 1)).toMatch(
        new RegExp(`^imported ${pubkey} .*\\nthe validator client holds 1 keys\\n$`),
      )
    } finally {
      page.stop()
    }
    expect([...target.keys.keys()]).toEqual([pubkey])
    expect(await isProvisioned(path)).toBe(true)
  })

  test('are held by the client, which opens them, with fee recipient and gas limit; the stakes say so', async () => {
    const stakes = [await stake(), await stake()]
    expect(await isProvisioned(stakes[0]?.path ?? '')).toBe(false)
    const feeRecipient = `0x${'fe'.repeat(20)}`
    const pubkeys = stakes.map(({ pubkey }) => pubkey)
    const pushed = await push(pubkeys, { feeRecipient, gasLimit: 45_000_000n })
    expect(pushed.map(({ outcome }) => outcome)).toEqual(['imported', 'imported'])
    expect([...target.keys].sort()).toEqual(pubkeys.map((pubkey) => [pubkey, { feeRecipient, gasLimit: '45000000' }]).sort())
    for (const { path } of stakes) expect(await isProvisioned(path)).toBe(true)
    // Once more: nothing is imported again.
    expect((await push(pubkeys)).map(({ outcome }) => outcome)).toEqual(['present', 'present'])
    expect(target.calls.filter((call) => call === 'POST /eth/v1/keystores')).toHaveLength(1)
  })

  test('never go to two places, unless somebody says that they run nowhere else', async () => {
    const { pubkey, path } = await stake()
    await push([pubkey])
    const other = await startFakeKeymanager()
    try {
      await expect(push([pubkey], { to: other.url })).rejects.toThrow(
        new RegExp(`exported before: .* to keymanager ${target.url}\\..*--again`),
      )
      const exporting = {
        config: join(folder, 'service.yaml'),
        outDir: join(folder, `out-${name}`),
        passwordFile: join(folder, 'password'),
      }
      await expect(exportKeystores({ ...exporting, pubkeys: [pubkey] })).rejects.toThrow(/exported before/)
      expect(other.calls.filter((call) => call.startsWith('POST'))).toEqual([])
      expect(await isProvisioned(path)).toBe(true)
      // It has left the first place, and did not come to the other.
      other.refusal = 'no room'
      await expect(push([pubkey], { to: other.url, again: true, withoutHistory: true })).rejects.toThrow('no room')
      expect(await isProvisioned(path)).toBe(false)
      other.refusal = undefined
      // What it has signed at the first place is asked for still, though the second is its place now.
      await expect(push([pubkey], { to: other.url })).rejects.toThrow(/was elsewhere .*--slashing-protection/)
      expect(await push([pubkey], { to: other.url, withoutHistory: true })).toHaveLength(1)
      // Now it is there, and not at the first place any more.
      await expect(push([pubkey])).rejects.toThrow(new RegExp(`to keymanager ${other.url}`))
      expect(await isProvisioned(path)).toBe(true)
    } finally {
      await other.close()
    }
  })

  test('that were elsewhere come with what they have signed there, or somebody says that it can not matter', async () => {
    const [{ pubkey, path }, present] = [await stake(), await stake()]
    await push([pubkey, present.pubkey])
    const other = await startFakeKeymanager()
    try {
      const to = other.url
      // Refused, and nothing is written down that would let it pass the next time.
      for (const again of [true, true])
        await expect(push([pubkey], { to, again })).rejects.toThrow(
          `the key of ${pubkey} was elsewhere (keymanager ${target.url}): give what`,
        )
      await expect(push([pubkey], { to })).rejects.toThrow(/exported before/)
      await expect(push([pubkey], { to, withoutHistory: true })).rejects.toThrow(/exported before/)
      expect(await isProvisioned(path)).toBe(true)
      expect(other.calls.filter((call) => call.startsWith('POST'))).toEqual([])
      const slashingProtectionFile = join(folder, 'moved.json')
      const metadata = { interchange_format_version: '5', genesis_validators_root: `0x${'ab'.repeat(32)}` }
      const data = [
        { pubkey, signed_blocks: [{ slot: '9' }], signed_attestations: [{ source_epoch: '1', target_epoch: '2', signing_root: '0xab' }] },
      ]
      writeFileSync(slashingProtectionFile, JSON.stringify({ metadata, data }))
      await push([pubkey], { to, again: true, slashingProtectionFile })
      expect(other.protections).toEqual([{ metadata, data }])
      // A key that the client holds already needs none.
      expect(await push([present.pubkey], { again: true })).toMatchObject([{ outcome: 'present' }])
    } finally {
      await other.close()
    }
  })

  test('that a client was seen to hold and does not any more are not given to whoever answers at its address now', async () => {
    const { pubkey, path } = await stake()
    await push([pubkey])
    // A port-forward leads to another client, say; the first one runs on.
    target.keys.delete(pubkey)
    await expect(push([pubkey])).rejects.toThrow(
      /does not hold the key of 0x[0-9a-f]+, which was seen at keymanager .*port-forward.*--again/,
    )
    await expect(push([pubkey], { again: true })).rejects.toThrow(/--slashing-protection/)
    expect(target.keys.has(pubkey)).toBe(false)
    target.refusal = 'no room'
    await expect(push([pubkey], { again: true, withoutHistory: true })).rejects.toThrow('no room')
    expect(await isProvisioned(path)).toBe(false)
    target.refusal = undefined
    expect(await push([pubkey], { again: true, withoutHistory: true })).toMatchObject([{ outcome: 'imported' }])
    expect(await isProvisioned(path)).toBe(true)
  })

  test('of several that are pushed to two places at once, one place gets them', async () => {
    const pubkeys = [(await stake()).pubkey, (await stake()).pubkey]
    const other = await startFakeKeymanager()
    try {
      const outcomes = await Promise.allSettled([push(pubkeys), push(pubkeys, { to: other.url })])
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      expect([target.keys.size, other.keys.size].sort()).toEqual([0, 2])
    } finally {
      await other.close()
    }
  })

  test('are written down before they are sent: what was exported to files, and what was interrupted', async () => {
    const exported = await stake()
    const outDir = join(folder, `files-${name}`)
    const base = { config: join(folder, 'service.yaml'), passwordFile: join(folder, 'password'), kdf: 'pbkdf2' as const }
    await exportKeystores({ ...base, outDir, pubkeys: [exported.pubkey] })
    await expect(push([exported.pubkey])).rejects.toThrow(/exported before: .*files-/)

    const { pubkey, path } = await stake()
    target.refusal = 'no room\nfor it'
    await expect(push([pubkey])).rejects.toThrow(`does not take the key of ${pubkey}: no room for it. It is written down`)
    expect(await isProvisioned(path)).toBe(false)
    const other = await startFakeKeymanager()
    try {
      await expect(push([pubkey], { to: other.url })).rejects.toThrow(/exported before/)
    } finally {
      await other.close()
    }
    target.refusal = undefined
    expect((await push([pubkey]))[0]?.outcome).toBe('imported')
    expect(await isProvisioned(path)).toBe(true)
  })

  test('that the client has another program sign for are refused, and nothing is sent', async () => {
    const { pubkey } = await stake()
    target.remote.add(pubkey)
    await expect(push([pubkey])).rejects.toThrow(/has another program sign for/)
    expect(target.calls.filter((call) => call.startsWith('POST'))).toEqual([])
    target.remote.clear()
    target.knowsRemoteKeys = false
    expect(await push([pubkey])).toHaveLength(1)
  })

  test('that the client says it has imported, but does not list, are not provisioned', async () => {
    const { pubkey, path } = await stake()
    target.forgets = true
    await expect(push([pubkey])).rejects.toThrow(/does not list/)
    expect(await isProvisioned(path)).toBe(false)
  })

  test('run though the client does not take a setting, which it gives its reason for', async () => {
    const { pubkey, path } = await stake()
    target.takesGasLimits = false
    await expect(push([pubkey], { gasLimit: 1n })).rejects.toThrow(
      'the validator client holds the keys, and does not take the gas limit (500: only with a builder)',
    )
    expect(await isProvisioned(path)).toBe(true)
  })

  test('run though the client goes on with another fee recipient than it says it has taken, which is told', async () => {
    const { pubkey, path } = await stake()
    target.ownFeeRecipient = `0x${'bb'.repeat(20)}`
    await expect(push([pubkey], { feeRecipient: `0x${'fe'.repeat(20)}` })).rejects.toThrow(
      /fee recipient of 0x[0-9a-f]+, and does not show it/,
    )
    expect(await isProvisioned(path)).toBe(true)
  })

  test('of which an answer says less than it was asked go on with the same command', async () => {
    const pubkeys = [(await stake()).pubkey, (await stake()).pubkey]
    target.shortAnswers = true
    await expect(push(pubkeys)).rejects.toThrow('was given 2 keystores and speaks of 1')
    target.shortAnswers = false
    expect((await push(pubkeys)).map(({ outcome }) => outcome)).toEqual(['present', 'present'])
  })

  test('are said to have signed nothing only where they were never given away', async () => {
    const { server, url } = await startGenesis()
    const config = join(folder, 'with-beacon.yaml')
    const text = readFileSync(join(folder, 'service.yaml'), 'utf8')
    writeFileSync(config, stringify({ ...parse(text), networks: [networkConfig('devnet', { beaconApiUrls: [url] })] }))
    const other = await startFakeKeymanager()
    try {
      const [unused, used] = [(await stake()).pubkey, (await stake()).pubkey]
      await push([used], { to: other.url })
      await push([unused, used], { config, again: true, withoutHistory: true })
      expect(target.protections).toEqual([
        {
          metadata: { interchange_format_version: '5', genesis_validators_root: genesis.genesis_validators_root },
          data: [{ pubkey: unused, signed_blocks: [], signed_attestations: [] }],
        },
      ])
      // A history is of this network, or is none of these keys'.
      const slashingProtectionFile = join(folder, 'other-network.json')
      const metadata = { interchange_format_version: '5', genesis_validators_root: `0x${'cd'.repeat(32)}` }
      const fresh = (await stake()).pubkey
      const data = [{ pubkey: fresh, signed_blocks: [], signed_attestations: [] }]
      writeFileSync(slashingProtectionFile, JSON.stringify({ metadata, data }))
      await expect(push([fresh], { config, slashingProtectionFile })).rejects.toThrow(/is of another network: .*0x(cd){32}.*0x(ab){32}/)
    } finally {
      server.close()
      await other.close()
    }
  })

  test('come with the history that is given, of these keys alone', async () => {
    const { pubkey } = await stake()
    const metadata = { interchange_format_version: '5', genesis_validators_root: `0x${'ab'.repeat(32)}` }
    const history = {
      pubkey: pubkey.toUpperCase().replace('0X', '0x'),
      signed_blocks: [],
      signed_attestations: [{ source_epoch: '1', target_epoch: '2' }],
    }
    const slashingProtectionFile = join(folder, 'history.json')
    writeFileSync(slashingProtectionFile, JSON.stringify({ metadata, data: [history, { ...history, pubkey: `0x${'cd'.repeat(48)}` }] }))
    const other = await stake()
    await expect(push([other.pubkey], { slashingProtectionFile })).rejects.toThrow(`holds no history of ${other.pubkey}`)
    await push([pubkey], { slashingProtectionFile })
    expect(target.protections).toEqual([{ metadata, data: [history] }])
  })

  test.each([
    { what: 'a wrong token', more: () => ({ tokenFile: join(folder, 'seed') }), says: /refuses the token \(403\)/ },
    { what: 'a client that is not there', more: () => ({ to: 'http://127.0.0.1:1' }), says: /could not be reached \(ECONNREFUSED\)/ },
    { what: 'a network of Solana or none', more: () => ({ network: 'none' }), says: /no Ethereum network/ },
    { what: 'a fee recipient that is none', more: () => ({ feeRecipient: '0x1' }), says: /20 bytes in hex/ },
    {
      what: 'a fee recipient that is mistyped',
      more: () => ({ feeRecipient: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD' }),
      says: /EIP-55 checksum/,
    },
    { what: 'the zero address for fee recipient', more: () => ({ feeRecipient: `0x${'0'.repeat(40)}` }), says: /zero address/ },
    { what: 'http to another machine', more: () => ({ to: 'http://10.0.0.1:7500' }), says: /must be https/ },
    { what: 'http to a name', more: () => ({ to: 'http://vc.example' }), says: /must be https/ },
  ])('are not pushed with $what, and nothing is written down', async ({ more, says }) => {
    const { pubkey } = await stake()
    const failure = await push([pubkey], more()).catch((error: Error) => error)
    expect(String(failure)).toMatch(says)
    expect(String(failure)).not.toContain(target.token)
    expect(await push([pubkey])).toHaveLength(1)
  })
})

test.each(['https://vc.example:7500', 'https://10.0.0.1', 'http://localhost:7500', 'http://127.0.0.1:7500', 'http://[::1]:7500/'])(
  '%s is taken',
  async (url) => {
    await createKeymanager({ url, token: new Secret(randomBytes(8).toString('hex')) }).close()
  },
)
