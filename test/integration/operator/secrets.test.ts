import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Wallet } from '@ethereumjs/wallet'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createValidatorKeys, parseSeed } from '../../../src/service/seed.ts'
import { html, httpStatus, reset } from '../../chains/faults.ts'
import { rpcError } from '../../chains/faulty-rpc.ts'
import { applyAll, eventually, PAYER, signer, stake } from '../../stack/resources.ts'
import { TEST_SEED, writeKey } from '../../stack/stack.ts'
import { metricsOf, untilPaidOnce, untilShows, untilStalls, useStack } from './harness.ts'

/**
 * Whatever goes right or wrong, no secret stands in anything that can be read from outside: output of both programs, resources, events,
 * metrics, command lines.
 */
const stack = useStack({ startOperator: false, operatorArgs: ['--log-level', 'trace', '--ui'], anvil: { mining: 0.3, accounts: 4 } })

const secrets = new Map<string, string>()
const secret = (what: string, text: string): string => {
  secrets.set(what, text)
  return text
}
const RPC_PATH = secret('path segment of the RPC URL', 'rpc-canary-8f1c2d7e')
const RPC_USER = secret('user of the RPC URL', 'rpc-user-canary-51')
const RPC_PASSWORD = secret('password of the RPC URL', 'rpc-password-canary-93')
const PASSWORD = secret('password of the keystore', 'keystore canary passphrase 42')
const WRONG_PASSWORD = secret('wrong password of the keystore', 'another canary passphrase 43')
const NOT_A_KEY = secret('content of a malformed key file', 'canary-that-is-no-key-77')
const WRONG_API_KEY = secret('API key that the service does not know', `sop_${'canary'.repeat(7)}Q`)

/** Stands before the RPC proxy as providers do: the path of the URL is the credential. */
let provider: Server
let rpcUrl = ''
const swap = (file: string, text: string) => {
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}
const keystore = join('vault', 'keystore.json')

beforeAll(async () => {
  const { rpcFaults, anvil, apiKeyFile, operatorKubeconfig, networks, writeNetworks, keysDir, operator } = stack()
  provider = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      if (request.url?.split('?')[0] !== `/v3/${RPC_PATH}`) {
        response.writeHead(401).end(`no such project: ${request.url}`)
        return
      }
      const answer = await fetch(rpcFaults.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: Buffer.concat(chunks).toString('utf8'),
      })
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' }).end(await answer.text())
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve))
  rpcUrl = `http://${RPC_USER}:${RPC_PASSWORD}@127.0.0.1:${(provider.address() as AddressInfo).port}/v3/${RPC_PATH}`

  secret('API key', readFileSync(apiKeyFile, 'utf8').trim())
  secret('seed', TEST_SEED)
  const validators = createValidatorKeys(parseSeed(TEST_SEED, 'the test'))
  for (let index = 0n; index < 8n; index++)
    secret(`validator's key ${index}`, Buffer.from(validators.derive(index).secretKey).toString('hex'))
  anvil.accounts.forEach(({ privateKey }, index) => {
    secret(`private key ${index}`, privateKey.slice(2))
    secret(`private key ${index} as a number`, BigInt(privateKey).toString())
  })
  const token = /token: "?([^\s"]+)/.exec(readFileSync(operatorKubeconfig, 'utf8'))?.[1]
  secret('token of the service account', token ?? '')
  secret("the administrator's token", /token: "?([^\s"]+)/.exec(stack().cluster.adminKubeconfig)?.[1] ?? '')
  for (const [what, text] of secrets) expect(text.length, what).toBeGreaterThan(10)

  const vault = anvil.accounts[1]
  const wallet = Wallet.fromPrivateKey(Buffer.from(vault?.privateKey.slice(2) ?? '', 'hex'))
  mkdirSync(join(keysDir, 'vault'))
  swap(join(keysDir, keystore), await wallet.toV3String(PASSWORD, { kdf: 'pbkdf2', c: 2_000 }))
  swap(join(keysDir, 'vault', 'password'), `${WRONG_PASSWORD}\n`)

  const [local] = networks.networks
  writeNetworks({ ...networks, networks: [{ ...local, rpcUrls: [rpcUrl] }] })
  await operator.start()
  await applyAll(stack().cluster, [
    signer(),
    signer({ keyName: 'vault', address: vault?.address }, 'vault'),
    signer({ keyName: 'broken', address: anvil.accounts[2]?.address }, 'broken'),
    signer({ keyName: 'other', address: anvil.accounts[3]?.address }, 'other'),
  ])
})
afterAll(() => {
  provider?.close()
  provider?.closeAllConnections()
})

describe('things go right, and wrong in every way', () => {
  test('a stake is paid by a plain key', async () => {
    await applyAll(stack().cluster, [stake('plain')])
    await untilPaidOnce(stack(), 'plain')
  })

  test('a keystore with a wrong password, then the right one', async () => {
    const { cluster, keysDir } = stack()
    await applyAll(cluster, [stake('vault', { signer: 'vault' })])
    await untilStalls(cluster, 'vault', 'KeyMalformed', /password/)
    swap(join(keysDir, 'vault', 'password'), `${PASSWORD}\n`)
    await untilPaidOnce(stack(), 'vault')
  })

  test('key files that hold no key, or that of another', async () => {
    const { cluster, keysDir, anvil } = stack()
    writeKey(keysDir, 'broken', NOT_A_KEY)
    writeKey(keysDir, 'other', anvil.accounts[2]?.privateKey ?? '')
    await applyAll(cluster, [stake('broken', { signer: 'broken' }), stake('other', { signer: 'other' })])
    await untilStalls(cluster, 'broken', 'KeyMalformed', /./)
    await untilStalls(cluster, 'other', 'KeyAddressMismatch', /./)
    // A keystore that is JSON no more: the parser's own message would quote it.
    swap(join(keysDir, 'broken', 'keystore.json'), `{"crypto": ${NOT_A_KEY}`)
    swap(join(keysDir, 'broken', 'password'), PASSWORD)
    writeKey(keysDir, 'broken', '')
    await untilStalls(cluster, 'broken', 'KeyMalformed', /both privateKey and keystore\.json/)
  })

  test('an API key that is refused, and a service that breaks', async () => {
    const { cluster, apiKeyFile, apiFaults } = stack()
    const good = readFileSync(apiKeyFile, 'utf8')
    swap(apiKeyFile, `${WRONG_API_KEY}\n`)
    await applyAll(cluster, [stake('refused')])
    await untilStalls(cluster, 'refused', 'Unauthorized', /./)
    apiFaults.when('POST /v1/ethereum/stakes').times(2, httpStatus(500, {}, `key ${good} at ${rpcUrl}`))
    swap(apiKeyFile, good)
    await untilPaidOnce(stack(), 'refused')
  })

  test('nodes that are down, answer HTML, or quote the URL', async () => {
    const { cluster, rpcFaults } = stack()
    for (const [name, fault] of [
      ['down', reset],
      ['gateway', html(502)],
      ['quoting', rpcError(`invalid project id in ${rpcUrl}`)],
    ] as const) {
      const broken = rpcFaults.when(() => true).always(fault)
      await applyAll(cluster, [stake(name)])
      await untilShows(cluster, name, 'ChainUnavailable', /./)
      broken.remove()
      await untilPaidOnce(stack(), name)
    }
  })

  test('a networks file with a mistake, and one with a URL that leads nowhere', async () => {
    const { networks, writeNetworks, cluster } = stack()
    const [local] = networks.networks
    const told = (text: RegExp) =>
      eventually(
        `the log says ${text}`,
        async () => stack().logs(),
        (logs) => text.test(logs),
      )
    writeNetworks({ ...networks, networks: [{ ...local, rpcUrls: [rpcUrl], chainId: rpcUrl }] })
    await told(/networks\[0\]\.chainId/)
    const reloads = () => stack().logs().split('the networks file changed and is in use').length
    const before = reloads()
    writeNetworks({ ...networks, networks: [{ ...local, rpcUrls: [`${rpcUrl}-gone`] }] })
    // Or the stake is paid by the node that is still in use.
    await eventually(
      'the file is in use',
      async () => reloads(),
      (count) => count > before,
    )
    await applyAll(cluster, [stake('nowhere')])
    // The provider answers 401: whoever runs the operator must mend it.
    await untilShows(cluster, 'nowhere', 'NodeAccessDenied', /node 1 of .* answers 401 even to eth_chainId/)
    writeNetworks({ ...networks, networks: [{ ...local, rpcUrls: [rpcUrl] }] })
    await untilPaidOnce(stack(), 'nowhere', { timeoutMs: 90_000 })
  })

  test('both programs stop and start', async () => {
    const { operator, service } = stack()
    await operator.stop()
    await service.kill()
    await service.start()
    await operator.start()
    await applyAll(stack().cluster, [stake('restarted')])
    await untilPaidOnce(stack(), 'restarted')
  })
})

describe('and no secret is told', () => {
  const look: Readonly<Record<string, () => Promise<string>>> = {
    'the output of both programs': async () => stack().logs(),
    'resources and events': () => stack().cluster.kubectlOk(['get', 'staking,events', '-A', '-o', 'json', '--show-managed-fields']),
    "the operator's metrics": () => metricsOf(stack()),
    'the web page': async () => {
      const url = stack().operatorMetrics.replace(/metrics$/, 'ui/')
      const read = async (path: string) => {
        const response = await fetch(url + path)
        expect(response.status, path).toBe(200)
        return response.text()
      }
      const fleet = await read('')
      const links = [...fleet.matchAll(/href="((?:signers|resources)\/[^"]+)"/g)].map(([, link = '']) => link)
      const pages: string[] = []
      for (const link of ['signers', ...links]) pages.push(await read(link))
      return [fleet, ...pages].join('\n')
    },
    "the service's metrics": async () => (await fetch(`${stack().serviceUrl}/metrics`)).text(),
    'command lines': async () =>
      [stack().operator, stack().service].map((program) => readFileSync(`/proc/${program.process().pid}/cmdline`, 'utf8')).join('\n'),
    'what the staking API answers': async () =>
      (
        await fetch(`${stack().serviceUrl}/v1/ethereum/stakes?limit=200`, {
          headers: { authorization: `Bearer ${readFileSync(stack().apiKeyFile, 'utf8').trim()}` },
        })
      ).text(),
  }
  test.each(Object.entries(look).map(([where, read]) => ({ where, read })))('in $where', async ({ read }) => {
    const text = (await read()).toLowerCase()
    expect(text.length).toBeGreaterThan(50)
    const found = [...secrets].flatMap(([what, value]) => {
      const encoded = Buffer.from(value).toString('base64').replace(/=+$/, '').toLowerCase()
      return [value.toLowerCase(), encodeURIComponent(value).toLowerCase(), encoded].some((form) => text.includes(form)) ? [what] : []
    })
    expect(found).toEqual([])
  })

  test('while what is no secret is there', async () => {
    expect(await look['resources and events']?.()).toContain(PAYER)
    expect(await (await fetch(stack().operatorMetrics.replace(/metrics$/, 'ui/signers'))).text()).toContain(PAYER)
    expect(stack().logs()).toContain('now Confirmed')
    expect(stack().logs()).toMatch(/"level":"warn"/)
  })
})
