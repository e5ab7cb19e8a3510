import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { type Commands, type PageOptions, pageCommands } from '../../cluster/page-commands.ts'
import { runToEnd } from '../../cluster/run.ts'
import { COMPILE_CACHE } from '../../stack/compile-cache.ts'
import { applyAll, getStake, signer, stake, untilReady, WITHDRAWAL_ADDRESS } from '../../stack/resources.ts'
import { kubectlEntry, mainEntry, NETWORK } from '../../stack/stack.ts'
import { useStack } from './harness.ts'

/** What looks and changes nothing, against a real cluster, chain and staking API. */
const stack = useStack()

const cli = (...args: readonly string[]) =>
  runToEnd({
    command: process.execPath,
    args: [kubectlEntry, ...args],
    env: {
      ...COMPILE_CACHE,
      KUBECONFIG: stack().cluster.adminKubeconfigPath,
      STAKING_NETWORKS: stack().networksFile,
      STAKING_KEYS_DIR: stack().keysDir,
    },
    signal: AbortSignal.timeout(60_000),
  })
/** Variables that name what `doctor` looks at. */
const NAMING = ['KUBECONFIG', 'STAKING_NETWORKS', 'STAKING_KEYS_DIR', 'STAKING_REMOTE_SIGNERS']
let hash = ''

beforeAll(async () => {
  await applyAll(stack().cluster, [signer(), stake('validator-1')])
  const ready = await untilReady(stack().cluster, 'validator-1')
  hash = ready.status?.transaction?.hash ?? ''
})

const opened: Commands[] = []
afterAll(() => {
  for (const page of opened) page.stop()
})
async function open(page: string, options: Omit<PageOptions, 'page'> = {}): Promise<Commands> {
  const commands = await pageCommands(stack().cluster, { page, ...options }, AbortSignal.timeout(120_000))
  opened.push(commands)
  return commands
}

test('the commands of the page are answered, as they stand', async () => {
  const { networksFile, keysDir, cluster, anvil } = stack()
  const found = { STAKING_NETWORKS: networksFile, STAKING_KEYS_DIR: keysDir }
  const page = await open('docs/how-to/look-into-it.md', {
    placeholders: {
      'team-a': 'default',
      hoodi: NETWORK,
      'https://rpc.example': anvil.url,
      '0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060': hash,
    },
    env: found,
    pod: { serviceConfig: '', doctorEnv: found },
  })
  expect(await page.run('What happened to a stake')).toMatch(/^EthereumStake default\/validator-1: Confirmed$/m)
  expect(await page.run('What a key has signed')).toContain(hash)
  expect(readFileSync(join(page.dir, 'audit.csv'), 'utf8')).toContain(hash)
  // In the pod, and outside of it.
  expect((await page.run('Whether all is in order')).match(/^ok +cluster: CRDs/gm)).toHaveLength(2)
  // As the tools of the launchpad write it.
  const { depositData } = (await getStake(cluster, 'validator-1'))?.status ?? {}
  const bare = (hex = '') => hex.replace('0x', '')
  page.file(
    'deposit_data-1.json',
    JSON.stringify([
      {
        pubkey: bare(depositData?.pubkey),
        withdrawal_credentials: bare(depositData?.withdrawalCredentials),
        amount: Number(depositData?.amountGwei),
        signature: bare(depositData?.signature),
        deposit_data_root: bare(depositData?.depositDataRoot),
        network_name: NETWORK,
      },
    ]),
  )
  page.file('networks.yaml', readFileSync(networksFile, 'utf8'))
  const verified = await page.run('Whether a deposit is what it says')
  // Of the file, of the transaction, and of the stake as it was given and as it is in the chain.
  expect(verified.match(/^ +holds +signature: /gm)).toHaveLength(4)
  expect(verified).not.toMatch(/BROKEN/)
  await page.run('Complete commands')
})

describe('status', () => {
  test('tells the life of a stake in order', async () => {
    const { code, stdout } = await cli('status', 'validator-1')
    expect(code).toBe(0)
    expect(stdout.split('\n')[0]).toBe('EthereumStake default/validator-1: Confirmed')
    const order = ['Created', 'Deposit', 'Signed', 'Confirmed=True'].map((what) => stdout.search(new RegExp(`Z +${what}`)))
    expect(order).toEqual(order.toSorted((a, b) => a - b))
    expect(order.every((at) => at > 0)).toBe(true)
    expect(stdout).toContain(`${hash} with nonce 0: Landed in block`)
  })

  test.each([
    ['none', ['status', 'nobody'], /^error: there is no .* nobody in namespace default/],
    ['no kind', ['status', 'pod/x'], /^error: "pod" is no kind of this: write one of ethereumstake/],
    ['no context', ['status', 'validator-1', '--context', 'nowhere'], /^error: the kubeconfig has no context nowhere: it has /],
    ['no kubeconfig', ['status', 'validator-1', '--kubeconfig', '/nowhere'], /^error: \/nowhere cannot be read \(ENOENT\)/],
  ])('of %s says so in one line', async (_what, args, message) => {
    const { code, stdout, stderr } = await cli(...args)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(message)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })
})

test('adopt, as the page has it, has a manifest take over what it made before, as in a new cluster', async () => {
  const { apiVersion, kind, metadata, spec } = (await getStake(stack().cluster, 'validator-1')) ?? {}
  const page = await open('docs/how-to/restore.md')
  page.file('networks.yaml', readFileSync(stack().networksFile, 'utf8'))
  page.file('manifests/fleet.yaml', stringify({ apiVersion, kind, metadata: { name: metadata?.name }, spec }))
  await page.run('A new cluster from Git')
  const stakeId = (await getStake(stack().cluster, 'validator-1'))?.status?.stakeId
  expect(parse(readFileSync(join(page.dir, 'manifests/fleet.yaml'), 'utf8'))).toMatchObject({ spec: { ...spec, adopt: { stakeId } } })
  const again = await runToEnd({
    command: process.execPath,
    args: [mainEntry, 'adopt', '--all', '-f', 'manifests/', '--networks', stack().networksFile, '--write'],
    cwd: page.dir,
    env: COMPILE_CACHE,
    signal: AbortSignal.timeout(60_000),
  })
  expect(again).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(/^adopted already: /) })
})

test('log prints what was signed, as a table, JSON and CSV', async () => {
  expect((await cli('log')).stdout).toMatch(new RegExp(`treasury +0 +Deposit +32 ETH +default +validator-1 +Landed +\\d+ +${hash}`))
  expect(JSON.parse((await cli('log', '-o', 'json')).stdout)).toMatchObject([{ hash, result: 'Landed', action: 'Call', network: NETWORK }])
  expect((await cli('log', '-o', 'csv', '--since', '2020-01-01')).stdout.split('\r\n')).toHaveLength(3)
  expect((await cli('log', '--signer', 'another')).stdout.trimEnd().split('\n')).toHaveLength(1)
})

describe('verify', () => {
  test('recomputes a stake from its spec and the chain', async () => {
    const { code, stdout } = await cli('verify', 'stake', 'validator-1', '--history')
    expect(stdout).toContain(`the money can return to ${WITHDRAWAL_ADDRESS.toLowerCase()} alone`)
    expect(stdout).toContain('it is the first one for its public key')
    expect(stdout).not.toMatch(/BROKEN|unknown/)
    expect(code).toBe(0)
  })

  test('says what a transaction pays, and that it is not what was expected', async () => {
    const wrong = await cli('verify', 'deposit', hash, '--network', NETWORK, '--withdrawal-address', `0x${'ab'.repeat(20)}`)
    expect(wrong.stdout).toMatch(/BROKEN +withdrawal credentials: the money would return to 0x7099/)
    expect(wrong.code).toBe(1)
  })

  test('of a file, with the history, says what was paid for its key before', async () => {
    const { depositData } = (await getStake(stack().cluster, 'validator-1'))?.status ?? {}
    const file = join(mkdtempSync(join(tmpdir(), 'verify-')), 'deposit.json')
    writeFileSync(file, JSON.stringify({ depositData }))
    const { code, stdout } = await cli('verify', 'deposit', file, '--network', NETWORK, '--history')
    expect([code, stdout]).toEqual([0, expect.stringContaining(`first deposit: it was paid by transaction ${hash}`)])
  })

  test('a hash cut short is no hash', async () => {
    const { code, stderr } = await cli('verify', 'deposit', hash.slice(0, 20), '--network', NETWORK)
    expect([code, stderr]).toEqual([
      1,
      `error: ${hash.slice(0, 20)} is not the hash of a transaction: that has 64 hex digits after 0x, and this has 18\n`,
    ])
  })

  test('nor is one without its 0x', async () => {
    const digits = hash.slice(2)
    const { code, stderr } = await cli('verify', 'deposit', digits, '--network', NETWORK)
    expect([code, stderr]).toEqual([1, `error: ${digits} is no file, and the hash of a transaction begins with 0x: write 0x${digits}\n`])
  })
})

describe('doctor', () => {
  const doctor = (...args: readonly string[]) => cli('doctor', ...args)

  test('finds nothing wrong where the operator works', async () => {
    const { code, stdout } = await doctor('--permissions')
    expect(stdout).not.toMatch(/^failed/m)
    for (const text of [
      // The chain of the tests began years ago, by its own clock.
      /^warning +node: .*, node 1: its latest block \d+ is \d+ s old/m,
      /^ok +node: .*, node 1: the deposit contract counts \d+ deposits/m,
      /^ok +staking API: for .*: it takes the API key and serves these networks/m,
      /^ok +key: signer treasury: the mounted key treasury is the key of 0xf39F/m,
      /^ok +cluster: CRDs: all \d+ are of this version/m,
      /^ok +cluster: lease staking-system\/staking-operator: .* leads/m,
      /^ok +permission: RBAC: all \d+ permissions of the operator are there/m,
    ])
      expect(stdout).toMatch(text)
    const { apiKeyFile } = stack()
    expect(stdout).not.toContain(readFileSync(apiKeyFile, 'utf8').trim())
    expect(stdout).not.toMatch(/https?:\/\//)
    expect(code).toBe(0)
  })

  test.each([
    ['--kubeconfig', '/nowhere', /^failed +cluster: API server: \/nowhere cannot be read/m],
    ['--context', 'nowhere', /^failed +cluster: API server: the kubeconfig has no context nowhere/m],
  ])('a cluster that is named by %s and is not there is a fault, whatever else is well', async (flag, value, says) => {
    const { code, stdout } = await doctor(flag, value)
    expect(stdout).toMatch(says)
    expect(code).toBe(1)
  })

  test.each(['--networks', '--remote-signers', '--keys-dir'])(
    'a file or folder that %s names and that is not there is a fault, whatever else is well',
    async (flag) => {
      const { code, stdout } = await doctor(flag, '/nowhere')
      expect(stdout).toMatch(/^failed +configuration: \/nowhere: it is not there/m)
      expect(code).toBe(1)
    },
  )

  test('with nothing configured says what it could not look at, and where it can', async () => {
    const home = mkdtempSync(join(tmpdir(), 'home-'))
    const { code, stdout, stderr } = await runToEnd({
      command: process.execPath,
      args: [mainEntry, 'doctor'],
      env: { ...COMPILE_CACHE, HOME: home, ...Object.fromEntries(NAMING.map((name) => [name, undefined])) },
      signal: AbortSignal.timeout(60_000),
    })
    expect(stdout.match(/^skipped/gm)).toHaveLength(3)
    expect(stdout).toContain('kubectl exec -n NAMESPACE deploy/staking-operator -- node /app/dist/main.js doctor')
    expect([code, stderr]).toEqual([1, 'error: nothing could be looked at from here\n'])
  })

  test('as the operator it has just the permissions that it needs', async () => {
    const { code, stdout } = await doctor('--kubeconfig', stack().operatorKubeconfig, '--permissions')
    expect(stdout).toMatch(/^ok +permission: RBAC/m)
    expect(code).toBe(0)
  })
})

test('bash completes what there is', async () => {
  const script = (await cli('completion', 'bash')).stdout
  const program = `kubectl-staking() { '${process.execPath}' '${kubectlEntry}' "$@"; }`
  const { stdout } = await runToEnd({
    command: 'bash',
    args: [
      '-c',
      `${program}\n${script}\nCOMP_WORDS=(kubectl-staking log --output c); COMP_CWORD=3; _kubectl_staking; echo "\${COMPREPLY[@]}"`,
    ],
    env: COMPILE_CACHE,
    signal: AbortSignal.timeout(60_000),
  })
  expect(stdout).toBe('csv\n')
})
