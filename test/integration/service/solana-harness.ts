import { randomBytes } from 'node:crypto'
import { encodeBase58 } from '../../../src/chains/solana/base58.ts'
import { encodeOffchainMessage } from '../../../src/chains/solana/challenge.ts'
import { joinTransaction, transactionSignature } from '../../../src/chains/solana/message.ts'
import { solanaNetworkConfig } from '../../../src/chains/solana/networks.ts'
import { createSolanaChain } from '../../../src/chains/solana/rpc-chain.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { SolanaNetwork } from '../../../src/service/solana/networks.ts'
import type { DatabaseConfig, Store } from '../../../src/service/store/database.ts'
import { type SolanaCluster, startSolanaCluster, type Validator } from '../../chains/solana/cluster.ts'
import { type Wallet, wallet } from '../solana-chain/wallet.ts'
import { type Response, startService, type TestService } from './harness.ts'

export const sol = 1_000_000_000n
export const stakes = '/v1/solana/stakes'
export const domain = 'staking.example'
const network = 'solana-test'

/** The service over a cluster, whose blocks are made by hand. */
export interface SolanaService {
  readonly service: TestService
  readonly cluster: SolanaCluster
  readonly validator: Validator
  readonly key: string
  /** Pays, and is the stake authority. */
  readonly payer: Wallet
  readonly withdrawer: Wallet
  /** Moves the service's wall clock. */
  advance(ms: number): void
  post(path: string, body?: object, idempotencyKey?: string): Promise<Response>
  put(path: string, body?: object): Promise<Response>
  get(path: string): Promise<Response>
  create(more?: object, idempotencyKey?: string): Promise<Response>
  /** The withdraw authority's signature of a challenge, as the service takes it. */
  approve(challenge: { challengeId: string; message: string }, by?: Wallet): { challengeId: string; signature: string }
  /** A new stake with its stake transaction. */
  withTransaction(more?: object): Promise<{ readonly path: string; readonly stake: Body; readonly transaction: Body }>
  /** Signs a transaction of the service by its required signers, and gives it to the cluster. Returns its signature. */
  broadcast(transaction: Body): string
  /** The same, then reports it, final. */
  land(path: string, transaction: Body): Promise<Body>
  close(): Promise<void>
}
// biome-ignore lint/suspicious/noExplicitAny: bodies were validated against the contract by the harness
export type Body = any

export async function startSolanaService(
  database: DatabaseConfig | Store,
  more: { readonly defaultVoteAccount?: boolean } = {},
): Promise<SolanaService> {
  const cluster = await startSolanaCluster()
  const validator = cluster.addValidator()
  const payer = wallet()
  const withdrawer = wallet()
  cluster.fund(payer.address, 1000n * sol)
  cluster.fund(withdrawer.address, sol)
  const config = solanaNetworkConfig.parse({
    name: network,
    chain: 'Solana',
    rpcUrls: [cluster.url],
    genesisHash: cluster.genesisHash,
    pollIntervalMs: 50,
  })
  const chain = createSolanaChain({ config, clock: systemClock, timeoutMs: 5_000 })
  const one: SolanaNetwork = { config, chain, ...(more.defaultVoteAccount ? { defaultVoteAccount: validator.voteAccount } : {}) }
  let ahead = 0
  const service = await startService(database, {
    solanaNetworks: new Map([[network, one]]),
    solanaPolicy: { domain, maxPriorityFeeLamports: 10_000n },
    clock: { ...systemClock, now: () => new Date(Date.now() + ahead) },
  })
  // An account of its own: several of these may share a database.
  const key = await service.key({ account: randomBytes(8).toString('hex') })
  const wallets = new Map([payer, withdrawer].map((each) => [each.address, each]))

  const post = (path: string, body?: object, idempotencyKey = randomBytes(8).toString('hex')) =>
    service.call('POST', path, { key, idempotencyKey, ...(body === undefined ? {} : { body }) })
  const put = (path: string, body?: object) => service.call('PUT', path, { key, ...(body === undefined ? {} : { body }) })
  const create = (fields: object = {}, idempotencyKey?: string) =>
    post(
      stakes,
      {
        network,
        amountLamports: String(5n * sol),
        stakeAuthority: payer.address,
        withdrawAuthority: withdrawer.address,
        ...(more.defaultVoteAccount ? {} : { voteAccount: validator.voteAccount }),
        ...fields,
      },
      idempotencyKey,
    )
  const approve: SolanaService['approve'] = ({ challengeId, message }, by = withdrawer) => ({
    challengeId,
    signature: encodeBase58(by.sign(encodeOffchainMessage(message))),
  })
  const broadcast = (transaction: Body): string => {
    const message = new Uint8Array(Buffer.from(transaction.messageBase64, 'base64'))
    const signatures = (transaction.requiredSigners as string[]).map((signer) => {
      const by = wallets.get(signer)
      if (by === undefined) throw new Error(`nobody here signs for ${signer}`)
      return [signer, by.sign(message)] as const
    })
    const raw = joinTransaction(message, new Map(signatures))
    cluster.ledger.submit(raw, { kind: 'land' })
    return transactionSignature(raw)
  }
  return {
    service,
    cluster,
    validator,
    key,
    payer,
    withdrawer,
    advance: (ms) => {
      ahead += ms
    },
    post,
    put,
    get: (path) => service.call('GET', path, { key }),
    create,
    approve,
    withTransaction: async (fields) => {
      const created = await create(fields)
      if (created.status !== 201) throw new Error(created.text)
      const path = `${stakes}/${created.body.stakeId}`
      const made = await post(`${path}/stake-transactions`, approve(created.body.challenge))
      if (made.status !== 201) throw new Error(made.text)
      return { path, stake: created.body, transaction: made.body }
    },
    broadcast,
    land: async (path, transaction) => {
      const signature = broadcast(transaction)
      cluster.settle()
      const reported = await put(`${path}/transactions/${transaction.txId}/submission`, { signature })
      if (reported.status !== 200) throw new Error(reported.text)
      return reported.body
    },
    close: async () => {
      await service.close()
      await cluster.close()
    },
  }
}
