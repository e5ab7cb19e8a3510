import type { Evidence } from './evidence.ts'
import { conditionOf, isReady, type KubernetesObject, nameOf } from './kubernetes.ts'
import { depositsFor, requestsFor } from './money.ts'
import { funded, fundedFor } from './solana-money.ts'
import { ofKind, type Wish } from './wishes.ts'

/** Nothing was staked, and nothing is wanted: it is settled without money. */
const withoutMoney = new Set(['NothingStaked', 'Withdrawn'])

/** Whatever says that it is Ready has its money on the chain, final. */
export function falselyReady(evidence: Evidence): readonly string[] {
  return evidence.objects.filter(isReady).flatMap((object) => {
    const why = doubt(evidence, object)
    return why === undefined ? [] : [`${nameOf(object)} is Ready, and ${why}`]
  })
}

function doubt(evidence: Evidence, object: KubernetesObject): string | undefined {
  const { finalBlock } = evidence.ethereum
  const isFinal = (paid: readonly { readonly block: number }[]): string | undefined =>
    paid.length === 0
      ? 'nothing of it is on the chain'
      : paid.some(({ block }) => block <= finalBlock)
        ? undefined
        : `what is on the chain is not final: block ${paid[0]?.block} of ${finalBlock}`
  switch (object.kind) {
    case 'EthereumStake': {
      const wish = wishOf(evidence, 'EthereumStake', object)
      return wish === undefined ? 'nobody asked for it' : isFinal(depositsFor(evidence, wish))
    }
    case 'ValidatorExit':
    case 'ValidatorWithdrawal': {
      const wish = wishOf(evidence, object.kind, object)
      return wish === undefined ? 'nobody asked for it' : isFinal(requestsFor(evidence, wish))
    }
    case 'SolanaStake': {
      const wish = wishOf(evidence, 'SolanaStake', object)
      if (wish === undefined) return 'nobody asked for it'
      const reason = conditionOf(object, 'Ready')?.reason ?? ''
      const [made] = fundedFor(funded(evidence), wish)
      if (made === undefined) return withoutMoney.has(reason) ? undefined : 'nothing of it is on the chain'
      const account = evidence.solana.accounts.get(made.account)
      if (reason === 'Withdrawn') return account === undefined ? undefined : 'its account is still there'
      return account === undefined ? 'its account is gone' : undefined
    }
    default:
      return undefined
  }
}

const wishOf = <K extends Wish['kind']>({ wishes }: Evidence, kind: K, { metadata }: KubernetesObject) =>
  ofKind(wishes, kind).find(({ namespace, name }) => namespace === metadata.namespace && name === metadata.name)
