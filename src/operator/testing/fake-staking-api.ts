import { createHash } from 'node:crypto'
import type { Address, EthereumChain, Hash } from '../../chains/ethereum/chain.ts'
import { encodeDepositCalldata, signDepositMessage, withdrawalCredentials } from '../../chains/ethereum/deposit.ts'
import type { EthereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import { StakingApiError } from '../../contract/client-error.ts'
import type { EthereumStakeBody } from '../../contract/schemas/ethereum-stake.ts'
import { gweiToWei } from '../../lib/amounts.ts'
import type { StakingApi } from '../ports.ts'
import { copyOf, setBack } from './set-back.ts'

type Request = Parameters<StakingApi['createEthereumStake']>[0]

/** The staking service in memory, as far as the contract goes: idempotency by key, references unique, a new BLS key a stake. It can be made to lie. */
export function createFakeStakingApi(config: EthereumNetworkConfig) {
  const stakes = new Map<string, EthereumStakeBody>()
  const byKey = new Map<string, { readonly fingerprint: string; readonly stakeId: string }>()
  const byReference = new Map<string, string>()
  const requests: Request[] = []
  const numbers = new Map<string, number>()
  let made = 0
  const submissions: { readonly stakeId: string; readonly hash: Hash }[] = []
  const state = {
    /** Stakes whose deposit the service sees on the chain, though nobody has reported it. */
    paid: new Set<string>(),
    /** What of each answer is another than it should be. */
    lie: undefined as ((body: EthereumStakeBody) => EthereumStakeBody) | undefined,
  }
  const answer = (body: EthereumStakeBody): EthereumStakeBody => structuredClone(state.lie === undefined ? body : state.lie(body))
  const find = (stakeId: string): EthereumStakeBody => {
    const body = stakes.get(stakeId)
    if (body === undefined)
      throw new StakingApiError('not found', { kind: 'problem', code: 'not-found', status: 404, outcomeUnknown: false })
    return body
  }

  const api: StakingApi = {
    async createEthereumStake(request) {
      requests.push(request)
      const { idempotencyKey, ...rest } = request
      const fingerprint = JSON.stringify({ ...rest, amountGwei: rest.amountGwei.toString() })
      const before = byKey.get(idempotencyKey)
      if (before !== undefined) {
        if (before.fingerprint !== fingerprint)
          throw new StakingApiError('reused', { kind: 'problem', code: 'idempotency-key-reused', status: 409, outcomeUnknown: false })
        return answer(find(before.stakeId))
      }
      const existingId = byReference.get(request.externalReference)
      if (existingId !== undefined)
        throw new StakingApiError('exists', { kind: 'problem', code: 'reference-exists', status: 409, existingId, outcomeUnknown: false })
      const stakeId = createHash('sha256').update(`stake ${made++}`).digest('hex').slice(0, 32)
      // A key comes from its request (ADR 12), whatever a restored database has forgotten.
      const number = numbers.get(`${idempotencyKey} ${fingerprint}`) ?? numbers.size
      numbers.set(`${idempotencyKey} ${fingerprint}`, number)
      const body = makeStake(config, request, stakeId, number)
      stakes.set(stakeId, body)
      byKey.set(idempotencyKey, { fingerprint, stakeId })
      byReference.set(request.externalReference, stakeId)
      return answer(body)
    },
    ethereumStake: async (stakeId) => answer(find(stakeId)),
    ethereumStakesNamed: async (reference) =>
      [...stakes.values()].filter(({ externalReference }) => externalReference === reference).map(answer),
    async cancelEthereumStake(stakeId) {
      const body = find(stakeId)
      if (body.transaction.status === 'cancelled') return answer(body)
      if (body.transaction.status !== 'awaiting_submission' || state.paid.has(stakeId))
        throw new StakingApiError('reported or paid', { kind: 'problem', code: 'invalid-state', status: 409, outcomeUnknown: false })
      const cancelled = { ...body, transaction: { status: 'cancelled' as const } }
      stakes.set(stakeId, cancelled)
      if (body.externalReference !== undefined) byReference.delete(body.externalReference)
      return answer(cancelled)
    },
    async submitEthereumStake(stakeId, hash) {
      if (find(stakeId).transaction.status === 'cancelled')
        throw new StakingApiError('cancelled', { kind: 'problem', code: 'invalid-state', status: 409, outcomeUnknown: false })
      submissions.push({ stakeId, hash })
      const body = { ...find(stakeId), transaction: { status: 'submitted' as const, hash } }
      stakes.set(stakeId, body)
      return answer(body)
    },
  }
  return {
    api,
    state,
    requests,
    submissions,
    stakes: () => [...stakes.values()],
    /** The service's database is set back to an empty copy: whoever asks again gets the same deposit, under another id. @returns what brings it back */
    forget: (): (() => void) => setBack(stakes, byKey, byReference),
    /** Its database as it is now, as in a backup. @returns what sets it to that */
    copy: (): (() => void) => copyOf(stakes, byKey, byReference),
    setValidator(stakeId: string, status: EthereumStakeBody['validator']['status'], index?: number, activationEpoch?: number) {
      const body = find(stakeId)
      const known = { ...(index === undefined ? {} : { index }), ...(activationEpoch === undefined ? {} : { activationEpoch }) }
      stakes.set(stakeId, { ...body, validator: { ...body.validator, status, ...known } })
    },
  }
}
export type FakeStakingApi = ReturnType<typeof createFakeStakingApi>

type DepositMessage = Parameters<typeof signDepositMessage>[1]
/** The same key signs the same message in every world: once is enough. */
const signatures = new Map<string, ReturnType<typeof signDepositMessage>>()
function signedBy(keyNumber: number, message: DepositMessage): ReturnType<typeof signDepositMessage> {
  const name = [keyNumber, ...Object.values(message)].join(' ')
  const known = signatures.get(name)
  if (known !== undefined) return known
  const secret = createHash('sha256').update(`validator ${keyNumber}`).digest()
  secret[0] = 0
  const signed = signDepositMessage(secret, message)
  signatures.set(name, signed)
  return signed
}

/** A valid stake: what an honest service answers. */
export function makeStake(
  config: Pick<EthereumNetworkConfig, 'name' | 'chainId' | 'depositContractAddress' | 'genesisForkVersion'>,
  request: Pick<Request, 'network' | 'amountGwei' | 'withdrawalAddress' | 'credentialsType' | 'externalReference'>,
  stakeId: string,
  keyNumber: number,
): EthereumStakeBody {
  const signed = signedBy(keyNumber, {
    withdrawalCredentials: withdrawalCredentials(request.credentialsType, request.withdrawalAddress),
    amountGwei: request.amountGwei,
    genesisForkVersion: config.genesisForkVersion,
  })
  return {
    stakeId,
    network: request.network,
    amountEth: request.amountGwei,
    withdrawalAddress: request.withdrawalAddress,
    credentialsType: request.credentialsType,
    externalReference: request.externalReference,
    depositData: {
      ...signed,
      forkVersion: config.genesisForkVersion,
      networkName: config.name,
      depositContractAddress: config.depositContractAddress,
      chainId: config.chainId,
    },
    unsignedTransaction: {
      chainId: config.chainId,
      to: config.depositContractAddress,
      data: encodeDepositCalldata(signed),
      valueWei: gweiToWei(request.amountGwei),
    },
    transaction: { status: 'awaiting_submission' },
    validator: { pubkey: signed.pubkey, status: 'unknown' },
    createdAt: '2030-01-01T00:00:00Z',
  }
}

/** A network of one chain and one API, for tests that look at the ports themselves. */
export type Ports = { readonly chain: EthereumChain; readonly api: StakingApi; readonly address: Address }
