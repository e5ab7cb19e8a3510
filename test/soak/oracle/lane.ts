import type { Sent } from './ethereum.ts'
import type { LastEvidence } from './evidence.ts'
import { at, nameOf } from './kubernetes.ts'

/** deposit(bytes,bytes,bytes,bytes32) */
const depositSelector = '0x22895118'

/** The signer signed deposits, requests and cancels, and nothing else, within its caps. */
export function foreignTransactions({ sent, terms }: LastEvidence): readonly string[] {
  return sent.flatMap((one) => {
    const wrong = wrongOf(one, terms)
    return wrong === undefined ? [] : [`transaction ${one.hash} of nonce ${one.nonce} ${wrong}`]
  })
}

/** What took each nonce of the signer is seen: a block that the node has lost may have held anything. */
export function unseenNonces({ sent, counts }: LastEvidence): readonly string[] {
  const seen = new Set(sent.map(({ nonce }) => nonce))
  const unseen = Array.from({ length: counts.final }, (_, nonce) => nonce).filter((nonce) => !seen.has(nonce))
  return unseen.length === 0 ? [] : [`nonces ${unseen.join(', ')} are final, and no block shows what used them`]
}

function wrongOf({ to, valueWei, input, from, maxFeePerGasWei }: Sent, terms: LastEvidence['terms']): string | undefined {
  const isCancel = to === from && input === '0x'
  if (isCancel) {
    if (valueWei !== 0n) return `sends ${valueWei} wei to its own address`
    return maxFeePerGasWei > 2n * terms.maxFeePerGasWei ? `is a cancel at ${maxFeePerGasWei} wei for gas` : undefined
  }
  if (maxFeePerGasWei > terms.maxFeePerGasWei) return `offers ${maxFeePerGasWei} wei for gas`
  if (to === terms.depositContract)
    return input.startsWith(depositSelector) ? undefined : `calls ${input.slice(0, 10)} of the deposit contract`
  if (to !== terms.requestContract) return `goes to ${to}`
  return valueWei > terms.maxRequestFeeWei ? `pays ${valueWei} wei for a request` : undefined
}

/**
 * Within the window of a limit, no more can land than twice its number: what was open when the window began, and what was signed in it. (When something was signed
 * is not on the chain.)
 */
export function overLimit({ sent, terms: { limit, depositContract, requestContract } }: LastEvidence): readonly string[] {
  const counted = sent.filter(
    ({ to, blockTime }) => (to === depositContract || to === requestContract) && blockTime <= (limit.until ?? Number.POSITIVE_INFINITY),
  )
  return counted.flatMap((first, index) => {
    const within = counted.slice(index).filter(({ blockTime }) => blockTime < first.blockTime + limit.seconds)
    return within.length <= 2 * limit.count
      ? []
      : [`${within.length} transactions landed within ${limit.seconds} s from block ${first.block}: the limit is ${limit.count}`]
  })
}

/** Every nonce that was given out is used and final, and nothing of the signer waits. */
export function openLane({ objects, counts }: LastEvidence): readonly string[] {
  const places = objects.filter(({ kind }) => kind === 'SignerNonce').map((object) => Number(at(object, 'spec', 'nonce')))
  const open = places.filter((nonce) => nonce >= counts.final).toSorted((a, b) => a - b)
  return [
    ...(open.length === 0 ? [] : [`nonces ${open.join(', ')} were given out, and the chain is final up to ${counts.final}`]),
    ...(counts.pending === counts.latest ? [] : [`${counts.pending - counts.latest} transactions of the signer wait in the pool`]),
    ...objects
      .filter((object) => object.kind === 'StakingTransaction' && at(object, 'status', 'state') === 'Open')
      .map((object) => `${nameOf(object)} is still open`),
  ]
}
