import { randomBytes } from 'node:crypto'
import { SecretKey } from '@chainsafe/blst'
import { encodeDepositCalldata, signDepositMessage, withdrawalCredentials } from '../../src/chains/ethereum/deposit.ts'
import { gweiToWei, parseEth } from '../../src/lib/amounts.ts'
import { settledPubkey } from '../fleet-object.ts'
import { AMOUNT_ETH, CHAIN_ID, DEPOSIT_CONTRACT, GENESIS_FORK_VERSION, NETWORK, WITHDRAWAL_ADDRESS } from '../network.ts'

type Json = Readonly<Record<string, unknown>>
export interface ApiAnswer {
  readonly status: number
  readonly body: string
}

/** The staking API with its deposits made beforehand: real keys, real signatures, answers at once. */
export interface PreparedApi {
  answer(method: string, path: string, idempotencyKey: string | undefined, body: string): ApiAnswer
  readonly created: number
  readonly submitted: number
}

const base = { network: NETWORK, amountEth: Number(AMOUNT_ETH), withdrawalAddress: WITHDRAWAL_ADDRESS, credentialsType: '0x02' }

function prepare(index: number): { readonly stakeId: string; readonly body: Json } {
  const amountGwei = parseEth(AMOUNT_ETH)
  const signed = signDepositMessage(SecretKey.fromKeygen(randomBytes(32)).toBytes(), {
    withdrawalCredentials: withdrawalCredentials('0x02', WITHDRAWAL_ADDRESS),
    amountGwei,
    genesisForkVersion: GENESIS_FORK_VERSION,
  })
  const stakeId = index.toString(16).padStart(32, '0')
  return {
    stakeId,
    body: {
      stakeId,
      ...base,
      depositData: {
        ...signed,
        amountGwei: String(amountGwei),
        forkVersion: GENESIS_FORK_VERSION,
        networkName: NETWORK,
        depositContractAddress: DEPOSIT_CONTRACT,
        chainId: CHAIN_ID,
      },
      unsignedTransaction: {
        chainId: CHAIN_ID,
        to: DEPOSIT_CONTRACT,
        data: encodeDepositCalldata(signed),
        valueWei: String(gweiToWei(amountGwei)),
      },
      transaction: { status: 'awaiting_submission' },
      validator: { pubkey: signed.pubkey, status: 'unknown' },
      createdAt: '2026-01-01T00:00:00Z',
    },
  }
}

const json = (status: number, body: Json): ApiAnswer => ({ status, body: JSON.stringify(body) })
const notFound = json(404, { type: 'about:blank', title: 'Not found', status: 404, code: 'not-found' })

export function createPreparedApi(count: number): PreparedApi {
  const prepared = Array.from({ length: count }, (_, index) => prepare(index))
  const byKey = new Map<string, ApiAnswer>()
  const byId = new Map(prepared.map(({ stakeId, body }) => [stakeId, json(200, body)]))
  const reported = new Set<string>()
  return {
    answer(method, path, idempotencyKey, body) {
      const [, stakeId = '', action] = /^\/v1\/ethereum\/stakes(?:\/([0-9a-f]{32}))?(\/submission)?$/.exec(path) ?? []
      if (method === 'POST' && stakeId === '') {
        const key = idempotencyKey ?? ''
        const known = byKey.get(key)
        if (known !== undefined) return known
        const next = prepared[byKey.size]
        if (next === undefined) throw new Error(`all ${count} prepared stakes were given out`)
        const made = json(201, next.body)
        byKey.set(key, made)
        return made
      }
      if (method === 'PUT' && action !== undefined) {
        reported.add(`${stakeId} ${body}`)
        return byId.get(stakeId) ?? notFound
      }
      return byId.get(stakeId) ?? settled(stakeId)
    },
    get created() {
      return byKey.size
    },
    get submitted() {
      return reported.size
    },
  }
}

/** What the service says of a stake of the settled fleet: the same as its status, so that a look at it is no news. */
function settled(stakeId: string): ApiAnswer {
  const pubkey = settledPubkey(stakeId)
  const { body } = prepare(0)
  return json(200, {
    ...body,
    stakeId,
    consensus: { status: 'accepted' },
    validator: { pubkey, status: 'active_ongoing', index: Number.parseInt(stakeId.slice(-8), 16) },
  })
}
