import { describe, expect, test } from 'vitest'
import { NetworksFileError, parseNetworksFile, readNetworksFile } from './networks-file.ts'

const api = 'stakingApi: {url: "https://api.example.org", apiKeyFile: /key}'
const hoodi = '{name: hoodi, chain: Ethereum, rpcUrls: ["https://user:SECRET@rpc.example.org"]}'
const parse = (text: string) => parseNetworksFile(text, '/etc/networks.yaml')

test('a known network needs its name and how it is reached; the rest is built in', () => {
  const { ethereum } = parse(`${api}\nnetworks: [${hoodi}]`)
  expect(ethereum).toHaveLength(1)
  expect(ethereum[0]).toMatchObject({
    bumpAfterMs: 180_000,
    api: { url: 'https://api.example.org', apiKeyFile: '/key', timeoutMs: 15_000 },
    config: { name: 'hoodi', chainId: 560048, genesisForkVersion: '0x10000910', confirmations: 'finalized', pollIntervalMs: 12_000 },
  })
})

test("a network's own staking API goes before the file's", () => {
  const own = hoodi.replace('}', ', stakingApi: {url: "http://own.example.org", apiKeyFile: /own}, bumpAfterMs: 5000}')
  expect(parse(`${api}\nnetworks: [${own}]`).ethereum[0]).toMatchObject({ api: { url: 'http://own.example.org' }, bumpAfterMs: 5000 })
})

const solana = '{name: devnet, chain: Solana, rpcUrls: ["https://rpc.example.org"]}'

test('a Solana network stands beside them; its challenges name the host of the staking API', () => {
  const file = parse(`${api}\nnetworks: [${hoodi}, ${solana}]`)
  expect(file.ethereum).toHaveLength(1)
  expect(file.solana).toMatchObject([
    { challengeDomain: 'api.example.org', config: { name: 'devnet', genesisHash: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG' } },
  ])
})
test.each([
  {
    given: 'a port of the staking API',
    text: `${api.replace('.org"', '.org:8443"')}\nnetworks: [${solana}]`,
    domain: 'api.example.org:8443',
  },
  {
    given: 'a domain of its own',
    text: `${api}\nnetworks: [${solana.replace('}', ', challengeDomain: stake.example.org}')}]`,
    domain: 'stake.example.org',
  },
])('$given is what a challenge must name', ({ text, domain }) => {
  expect(parse(text).solana[0]?.challengeDomain).toBe(domain)
})

describe('a file that cannot be used says where, and quotes no value', () => {
  test.each([
    { given: 'no YAML', text: '{', says: 'is not YAML' },
    { given: 'nothing', text: '', says: '/etc/networks.yaml' },
    { given: 'no networks', text: `${api}\nnetworks: []`, says: 'networks' },
    { given: 'a field that is not known', text: `${api}\nnetworks: [${hoodi}]\nmore: 1`, says: 'more' },
    {
      given: 'a misspelt field of a network',
      text: `${api}\nnetworks: [${hoodi.replace('}', ', confirmation: 1}')}]`,
      says: 'networks[0]',
    },
    { given: 'no staking API', text: `networks: [${hoodi}]`, says: 'networks[0].stakingApi' },
    {
      given: 'a staking API that is no URL',
      text: `stakingApi: {url: "ftp://SECRET", apiKeyFile: /key}\nnetworks: [${hoodi}]`,
      says: 'stakingApi.url',
    },
    { given: 'an unknown network without its constants', text: `${api}\nnetworks: [${hoodi.replace('hoodi', 'devnet')}]`, says: 'chainId' },
    {
      given: "a known network with another's contract",
      text: `${api}\nnetworks: [${hoodi.replace('}', ', depositContractAddress: "0x8617E340B3D01FA5F11F306F4090FD50E238070D"}')}]`,
      says: 'depositContractAddress',
    },
    { given: 'a known network with another chain id', text: `${api}\nnetworks: [${hoodi.replace('}', ', chainId: 1}')}]`, says: 'chainId' },
    {
      given: 'one chain under two names',
      text: `${api}\nnetworks: [${hoodi}, {name: mine, chain: Ethereum, rpcUrls: ["https://x.example.org"], chainId: 560048, depositContractAddress: "0x00000000219ab540356cBB839Cbe05303d7705Fa", genesisForkVersion: "0x10000910"}]`,
      says: 'hoodi and mine have the same chainId 560048',
    },
    {
      given: 'one cluster under two names',
      text: `${api}\nnetworks: [${solana}, ${solana.replace('devnet', 'mine').replace('}', ', genesisHash: EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG}')}]`,
      says: 'devnet and mine have the same genesisHash',
    },
    {
      given: 'an unknown cluster without its genesis',
      text: `${api}\nnetworks: [${solana.replace('devnet', 'mine')}]`,
      says: 'networks[0].genesisHash',
    },
    {
      given: 'a challenge domain that is a URL',
      text: `${api}\nnetworks: [${solana.replace('}', ', challengeDomain: "https://x"}')}]`,
      says: 'challengeDomain',
    },
    { given: 'a network twice', text: `${api}\nnetworks: [${hoodi}, ${hoodi}]`, says: 'hoodi is there twice' },
    {
      given: 'an RPC that is no URL',
      text: `${api}\nnetworks: [{name: hoodi, chain: Ethereum, rpcUrls: ["SECRET"]}]`,
      says: 'networks[0].rpcUrls',
    },
    { given: 'a chain that is not known', text: `${api}\nnetworks: [{name: x, chain: Bitcoin}]`, says: 'networks.0.chain' },
    { given: 'a bump after no time', text: `${api}\nnetworks: [${hoodi.replace('}', ', bumpAfterMs: 0}')}]`, says: 'bumpAfterMs' },
  ])('$given', ({ text, says }) => {
    const error = (() => {
      try {
        parse(text)
      } catch (caught) {
        return caught as Error
      }
      return new Error('it was taken')
    })()
    expect(error).toBeInstanceOf(NetworksFileError)
    expect(error.message).toContain(says)
    expect(error.message).not.toContain('SECRET')
  })
  test('no file', async () => {
    await expect(readNetworksFile('/nowhere/networks.yaml')).rejects.toThrow('cannot be read (ENOENT)')
  })
})
