import type { SolanaChain } from './chain.ts'
import { features, isFeatureOn } from './features.ts'
import { voteProgram } from './programs.ts'
import { LayoutError } from './reader.ts'
import { account, voteAccounts, withContext } from './rpc-formats.ts'
import type { Ask } from './rpc-nodes.ts'
import { decodeVoteTerms, type VoteTerms, voteTermsBytes } from './vote-account.ts'

/** A validator as a node lists it, with the terms of its own account. */
export function createVoteAccounts(ask: Ask): SolanaChain['voteAccount'] {
  return async (address, signal) => {
    const slice = { commitment: 'confirmed', encoding: 'base64', dataSlice: { offset: 0, length: voteTermsBytes } }
    const { value } = await ask(
      'getMultipleAccounts',
      [[address, features.admissionTicket], slice],
      withContext(account.array().length(2)),
      signal,
    )
    const [found = null, ticket = null] = value
    if (found === null) return { kind: 'missing' }
    if (found.owner !== voteProgram) return { kind: 'not-a-vote-account' }
    const filter = { commitment: 'confirmed', votePubkey: address, keepUnstakedDelinquents: true }
    const { current, delinquent } = await ask('getVoteAccounts', [filter], voteAccounts, signal)
    const of = (list: typeof current) => list.find(({ votePubkey }) => votePubkey === address)
    const listed = of(current) ?? of(delinquent)
    if (listed === undefined) return { kind: 'not-voting' }
    const { nodePubkey, activatedStake } = listed
    const terms = termsOf(found.data)
    return {
      kind: 'vote-account',
      account: {
        address,
        node: nodePubkey,
        commission: terms === undefined ? listed.commission : terms.commissionBps / 100,
        activatedStake,
        delinquent: of(current) === undefined,
        ...(terms?.blockRevenueBps === undefined ? {} : { blockRevenueCommission: terms.blockRevenueBps / 100 }),
        ...(terms?.blsKey === undefined ? {} : { blsKey: terms.blsKey }),
        ...(isFeatureOn(ticket) ? { needsBlsKey: true } : {}),
      },
    }
  }
}

/** Undefined for an account of a version that is not known here: then the node's word is all there is. */
function termsOf(data: Uint8Array): VoteTerms | undefined {
  try {
    return decodeVoteTerms(data)
  } catch (error) {
    if (error instanceof LayoutError) return undefined
    throw error
  }
}
