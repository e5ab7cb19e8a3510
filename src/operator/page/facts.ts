import { formatEth, solOf } from '../../lib/amounts.ts'
import { type EthereumStake, ethereumStake } from '../../resources/ethereum-stake.ts'
import { type SolanaStake, solanaStake } from '../../resources/solana-stake.ts'
import { type SolanaStakeAuthorization, solanaStakeAuthorization } from '../../resources/solana-stake-authorization.ts'
import { type StakingSigner, stakingSigner } from '../../resources/staking-signer.ts'
import { type ValidatorExit, validatorExit } from '../../resources/validator-exit.ts'
import { networkOfRequest } from '../../resources/validator-request.ts'
import { askedGwei, type ValidatorWithdrawal, validatorWithdrawal } from '../../resources/validator-withdrawal.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { Standable } from './standing.ts'

/** A resource as the page reads it from a cache. */
export type Shown = KubeObject & Standable & { readonly status?: { readonly phase?: string | undefined } | undefined }

/** Where a link of the page leads. */
export interface Target {
  readonly kind: string
  /** '' for a cluster-scoped kind. */
  readonly namespace: string
  readonly name: string
}

/** Something to know of a resource; those without a value are not there. */
export interface Fact {
  readonly label: string
  readonly value: string
  /** An address, a key, a hash. */
  readonly isCode?: boolean
  /** A time, RFC 3339. */
  readonly isTime?: boolean
  readonly target?: Target
}

export interface Summary {
  readonly network: string
  readonly amount: string
}

/** A kind as the page shows it. What it reads may be of another version of the definition: a field that isn't there is no fact. */
export interface KindView {
  readonly summary: (object: Shown) => Summary
  readonly facts: (object: Shown) => readonly (Fact | undefined)[]
}

const fact = (label: string, value: string | number | undefined, more: Omit<Fact, 'label' | 'value'> = {}): Fact | undefined =>
  value === undefined || value === '' ? undefined : { label, value: String(value), ...more }
const code = (label: string, value: string | undefined): Fact | undefined => fact(label, value, { isCode: true })
const signerFact = (label: string, name: string | undefined): Fact | undefined =>
  fact(label, name, name === undefined ? undefined : { target: { kind: stakingSigner.kind, namespace: '', name } })
const inEth = (amount: string | undefined): string => (amount === undefined || amount === '' ? '' : `${amount} ETH`)

const stakeView: KindView = {
  summary(object) {
    const { spec } = object as unknown as EthereumStake
    return { network: spec.network, amount: inEth(spec.amountEth) }
  },
  facts(object) {
    const { spec, status } = object as unknown as EthereumStake
    return [
      fact('Network', spec.network),
      fact('Amount', inEth(spec.amountEth)),
      signerFact('Signer', spec.signer),
      code('Withdrawal address', spec.withdrawalAddress),
      fact('Credentials', spec.credentialsType),
      code('Validator', status?.depositData?.pubkey ?? status?.validator?.pubkey),
      fact('Validator index', status?.validator?.index),
      fact('On the beacon chain', status?.validator?.status),
      fact('Deposit on the consensus layer', status?.consensus?.status),
      code('Id in the staking API', status?.stakeId),
    ]
  },
}

/** What exits and withdrawals have in common. */
function requestFacts(object: Shown): readonly (Fact | undefined)[] {
  const { metadata, spec, status } = object as unknown as ValidatorExit
  const stake = spec.validator.stakeRef?.name
  const payment = status?.consensus?.payment
  return [
    fact('Network', networkOfRequest({ spec, status })),
    signerFact('Signer', spec.signer),
    stake === undefined
      ? undefined
      : fact('Stake', stake, { target: { kind: ethereumStake.kind, namespace: metadata.namespace ?? '', name: stake } }),
    code('Validator', status?.validator?.pubkey ?? spec.validator.pubkey),
    fact('On the consensus layer', [status?.consensus?.status, ...(status?.consensus?.rules ?? [])].filter(Boolean).join(', ')),
    payment === undefined ? undefined : fact('Payment', `${payment.state}: ${inEth(payment.amountEth)}`),
    code('Id in the staking API', status?.requestId),
  ]
}

const exitView: KindView = {
  summary(object) {
    return { network: networkOfRequest(object as unknown as ValidatorExit) ?? '', amount: 'all' }
  },
  facts: requestFacts,
}

const askedEth = ({ spec }: ValidatorWithdrawal): string => {
  const gwei = askedGwei(spec)
  return /^[0-9]{1,20}$/.test(gwei) ? inEth(formatEth(BigInt(gwei) as Parameters<typeof formatEth>[0])) : ''
}
const withdrawalView: KindView = {
  summary(object) {
    const request = object as unknown as ValidatorWithdrawal
    return { network: networkOfRequest(request) ?? '', amount: askedEth(request) }
  },
  facts: (object) => [fact('Amount', askedEth(object as unknown as ValidatorWithdrawal)), ...requestFacts(object)],
}

const solanaView: KindView = {
  summary(object) {
    const { spec } = object as unknown as SolanaStake
    return { network: spec.network, amount: `${solOf(spec.amountLamports)} SOL` }
  },
  facts(object) {
    const { spec, status } = object as unknown as SolanaStake
    const { protocol } = status ?? {}
    return [
      fact('Network', spec.network),
      fact('Amount', `${solOf(spec.amountLamports)} SOL`),
      fact('Desired state', spec.desiredState),
      fact('On the chain', protocol?.status),
      fact('Earning', status?.activeSol === undefined ? undefined : `${status.activeSol} SOL`),
      fact('Vote account is', protocol?.validator),
      signerFact('Stake authority', (status?.handOver?.stakeSigner ?? spec.stakeAuthority.signer) || undefined),
      signerFact('Withdraw authority', (status?.handOver?.withdrawSigner ?? spec.withdrawAuthority.signer) || undefined),
      code('Stake account', status?.stakeAccount),
      code('Vote account', status?.voteAccount ?? spec.voteAccount),
      code('Destination', spec.destination),
      code('Id in the staking API', status?.stakeId),
    ]
  },
}

const authorizationView: KindView = {
  summary: (object) => ({ network: (object as unknown as SolanaStakeAuthorization).status?.network ?? '', amount: '' }),
  facts(object) {
    const { spec, status } = object as unknown as SolanaStakeAuthorization
    return [
      fact('Network', status?.network),
      fact('Stake', spec.stakeRef.name),
      code('Stake account', status?.stakeAccount),
      code('Stake authority before', status?.from?.stakeAuthority),
      code('New stake authority', status?.to?.stakeAuthority),
      code('Withdraw authority before', status?.from?.withdrawAuthority),
      code('New withdraw authority', status?.to?.withdrawAuthority),
    ]
  },
}

const signerView: KindView = {
  summary(object) {
    const { spec, status } = object as unknown as StakingSigner
    return { network: spec.chain, amount: status?.balance ?? '' }
  },
  facts(object) {
    const { spec, status } = object as unknown as StakingSigner
    return [
      fact('Chain', spec.chain),
      code('Address', spec.address),
      fact('Balance', status?.balance),
      fact('Balance read', status?.balanceReadAt, { isTime: true }),
      fact('Minimum balance', spec.minimumBalance),
      fact('Highest amount of one transaction', spec.policy?.maxPerTransaction),
    ]
  },
}

/** By kind, in the order of the filter. */
export const kindViews: Readonly<Record<string, KindView>> = {
  [ethereumStake.kind]: stakeView,
  [validatorExit.kind]: exitView,
  [validatorWithdrawal.kind]: withdrawalView,
  [solanaStake.kind]: solanaView,
  [solanaStakeAuthorization.kind]: authorizationView,
  [stakingSigner.kind]: signerView,
}
