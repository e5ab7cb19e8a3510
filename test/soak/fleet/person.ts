import { readFile } from 'node:fs/promises'
import { rpc } from '../oracle/bytes.ts'
import { at, conditionOf, type KubernetesObject, nameOf } from '../oracle/kubernetes.ts'
import type { Fleet } from './world.ts'

/** What a chain shows neither at first nor so much later never lands: it is longer than any program keeps what it was told, and than a blockhash lives. */
const CERTAIN_MS = 60_000

/** What the person on duty does about one stalled resource. */
export type Answer =
  | { readonly is: 'annotate'; readonly transaction: string; readonly annotation: string; readonly value: string }
  /** It was looked for before the resource is let go, as the message asks. */
  | { readonly is: 'let go' }
  /** It was done before, and the log has lost it: nothing is left to do for the resource. */
  | { readonly is: 'delete' }
  /** What the staking API has lost was never paid: the resource is made anew. */
  | { readonly is: 'make anew' }

interface WithdrawalRequest {
  readonly requestId: string
  readonly status: string
  readonly externalReference?: string
}

/** The person on duty, where messages ask for a look at the chain and for certainty. */
export function createPerson({ anvil, solana, stack }: Pick<Fleet, 'anvil' | 'solana' | 'stack'>) {
  const missingSince = new Map<string, number>()
  /** Straight to the service, as `curl` goes. */
  async function askApi(method: string, path: string): Promise<unknown> {
    const key = (await readFile(stack.apiKeyFile, 'utf8')).trim()
    const answer = await fetch(`${stack.serviceUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(5_000),
    })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`)
    return answer.json()
  }

  async function isNowhere(what: string, looks: readonly Promise<boolean>[]): Promise<boolean> {
    if ((await Promise.all(looks)).includes(true)) {
      missingSince.delete(what)
      return false
    }
    const since = missingSince.get(what) ?? performance.now()
    missingSince.set(what, since)
    return performance.now() - since > CERTAIN_MS
  }
  const isTransactionThere = async (hash: string): Promise<boolean> => (await anvil.rpc('eth_getTransactionByHash', [hash])) !== null
  /** Also an account that is closed by now was paid. */
  const wasAccountUsed = async (address: string): Promise<boolean> =>
    (await rpc<readonly { readonly err: unknown }[]>(solana.url, 'getSignaturesForAddress', [address, { commitment: 'confirmed' }])).some(
      ({ err }) => err === null,
    )

  return {
    /** What was certain is not any more: a cluster that was set back may sign once more what it has forgotten. */
    forget: (): void => missingSince.clear(),
    /**
     * An exit waits for withdrawals that nobody has sent: those that no resource has (etcd was set back while they were taken back) are cancelled at the staking API.
     * @returns their ids
     */
    async takesBack(exit: KubernetesObject, isThere: (name: string) => boolean): Promise<readonly string[]> {
      const ready = conditionOf(exit, 'Ready')
      const pubkey = at(exit, 'status', 'validator', 'pubkey') ?? at(exit, 'spec', 'validator', 'pubkey')
      const waits = ready?.reason === 'PendingWithdrawals' && ready.message.includes('cancelled at the staking API')
      const key = `${nameOf(exit)} waits`
      if (!waits || typeof pubkey !== 'string') missingSince.delete(key)
      if (!waits || typeof pubkey !== 'string' || !(await isNowhere(key, []))) return []
      const path = `/v1/ethereum/validators/${pubkey}/withdrawal-requests`
      const { items } = (await askApi('GET', path)) as { readonly items: readonly WithdrawalRequest[] }
      const orphans = items.filter(
        ({ status, externalReference = '' }) => status === 'awaiting_submission' && externalReference !== '' && !isThere(externalReference),
      )
      for (const { requestId } of orphans) await askApi('DELETE', `${path}/${requestId}`)
      return orphans.map(({ requestId }) => requestId)
    },
    /** `accounts`: those that may hold the money of a Solana stake, as its status and its records name them. */
    async answerTo(object: KubernetesObject, accounts: readonly string[]): Promise<Answer | undefined> {
      const stalled = conditionOf(object, 'Stalled')
      if (stalled?.status !== 'True') return undefined
      const { kind, metadata } = object
      const key = `${kind}/${metadata.namespace}/${metadata.name}`
      const hashes = stalled.message.match(/0x[0-9a-f]{64}\b/g) ?? []
      if (metadata.deletionTimestamp !== undefined) {
        if (
          stalled.reason !== 'UnknownSubmission' ||
          !(await isNowhere(`${key} goes`, kind === 'EthereumStake' ? hashes.map(isTransactionThere) : []))
        )
          return undefined
        return { is: 'let go' }
      }
      if (stalled.reason === 'UnknownSubmission') {
        if (/^Transaction 0x[0-9a-f]{64} has made the very same request/.test(stalled.message)) return { is: 'delete' }
        const [, transaction, annotation, value] = /kubectl annotate stx (\S+) (\S+)=([0-9a-fx,]+)/.exec(stalled.message) ?? []
        if (transaction === undefined || annotation === undefined || value === undefined) return undefined
        const isCertain = await isNowhere(`${key} ${value}`, value.split(',').map(isTransactionThere))
        return isCertain ? { is: 'annotate', transaction, annotation, value } : undefined
      }
      const isLost = stalled.reason === 'VerificationFailed' && stalled.message.includes('lost its data')
      const isUnknown = stalled.reason === 'RequestRefused' && stalled.message.includes('does not know this (404)')
      if (kind !== 'SolanaStake' || !(isLost || isUnknown)) return undefined
      const named = [...accounts, at(object, 'status', 'stakeAccount')].filter((one): one is string => typeof one === 'string')
      return (await isNowhere(`${key} ${named.join()}`, named.map(wasAccountUsed))) ? { is: 'make anew' } : undefined
    },
  }
}
