import { base58, rpc } from './bytes.ts'

/** What one instruction does, read from its bytes. Lamports. */
export type Action =
  | { readonly is: 'create'; readonly account: string; readonly payer: string; readonly lamports: bigint }
  | { readonly is: 'transfer'; readonly from: string; readonly to: string; readonly lamports: bigint }
  | { readonly is: 'initialize'; readonly account: string; readonly staker: string; readonly withdrawer: string }
  | { readonly is: 'delegate'; readonly account: string; readonly vote: string }
  | { readonly is: 'deactivate'; readonly account: string }
  | { readonly is: 'withdraw'; readonly account: string; readonly to: string; readonly lamports: bigint }
  /** Moves nothing: the budget of computation, the size of an account. */
  | { readonly is: 'nothing' }
  | { readonly is: 'unknown'; readonly what: string }

/** A transaction that landed and did what it says. */
export interface Landed {
  readonly signature: string
  readonly slot: number
  readonly actions: readonly Action[]
}

/** A stake account, read from its 200 bytes. */
export interface StakeAccount {
  readonly lamports: bigint
  readonly staker: string
  readonly withdrawer: string
  readonly vote: string | undefined
}

export interface SolanaFacts {
  readonly landed: readonly Landed[]
  /** Of every account that a transaction here has made; undefined where it is closed. */
  readonly accounts: ReadonlyMap<string, StakeAccount | undefined>
}

const systemProgram = '11111111111111111111111111111111'
const stakeProgram = 'Stake11111111111111111111111111111111111111'
const budgetProgram = 'ComputeBudget111111111111111111111111111111'
const page = 1_000
/** A node takes so many at a time. */
const mostAccounts = 100

/** Reads what the final chain has of these authorities: their transactions, oldest first, and the accounts that they made. */
export function createSolanaReader(url: string, authorities: readonly string[]): () => Promise<SolanaFacts> {
  const known = new Map<string, Landed>()
  const landedOf = async (signature: string): Promise<Landed> => {
    const found = await rpc<{ readonly slot: number; readonly transaction: readonly [string, string] } | null>(url, 'getTransaction', [
      signature,
      { encoding: 'base64', commitment: 'finalized', maxSupportedTransactionVersion: 0 },
    ])
    if (found === null) throw new Error(`${signature} is in the history of an address, and can't be read`)
    return { signature, slot: found.slot, actions: actionsOf(Buffer.from(found.transaction[0], 'base64')) }
  }
  return async () => {
    for (const authority of authorities)
      for (const { signature, err } of await history(url, authority))
        if (err === null && !known.has(signature)) known.set(signature, await landedOf(signature))
    const landed = [...known.values()].toSorted((a, b) => a.slot - b.slot)
    const made = new Set(landed.flatMap(({ actions }) => actions.flatMap((one) => (one.is === 'initialize' ? [one.account] : []))))
    const accounts = new Map<string, StakeAccount | undefined>()
    const all = [...made]
    for (let first = 0; first < all.length; first += mostAccounts)
      for (const [address, account] of await stakeAccounts(url, all.slice(first, first + mostAccounts))) accounts.set(address, account)
    return { landed, accounts }
  }
}

async function history(url: string, address: string) {
  const all: { readonly signature: string; readonly err: unknown }[] = []
  for (;;) {
    const last = all.at(-1)
    const next = await rpc<readonly { readonly signature: string; readonly err: unknown }[]>(url, 'getSignaturesForAddress', [
      address,
      { limit: page, commitment: 'finalized', ...(last === undefined ? {} : { before: last.signature }) },
    ])
    all.push(...next)
    if (next.length < page) return all
  }
}

interface RawAccount {
  readonly lamports: number
  readonly owner: string
  readonly data: readonly [string, string]
}

async function stakeAccounts(url: string, addresses: readonly string[]): Promise<ReadonlyMap<string, StakeAccount | undefined>> {
  const { value } = await rpc<{ readonly value: readonly (RawAccount | null)[] }>(url, 'getMultipleAccounts', [
    addresses,
    { encoding: 'base64', commitment: 'finalized' },
  ])
  return new Map(
    addresses.map((address, index) => {
      const found = value[index] ?? null
      const isThere = found !== null && found.owner === stakeProgram
      return [address, isThere ? decodeStakeAccount(Buffer.from(found.data[0], 'base64'), BigInt(found.lamports)) : undefined]
    }),
  )
}

/** StakeStateV2: a tag (2 is delegated), rent, the two authorities, a lockup of 48 bytes, then the vote account. */
export function decodeStakeAccount(data: Buffer, lamports: bigint): StakeAccount {
  const delegated = data.readUInt32LE(0) === 2
  return {
    lamports,
    staker: base58(data.subarray(12, 44)),
    withdrawer: base58(data.subarray(44, 76)),
    vote: delegated ? base58(data.subarray(124, 156)) : undefined,
  }
}

/** Every instruction of a transaction, from its wire format (legacy or version 0, without lookup tables). */
export function actionsOf(bytes: Buffer): readonly Action[] {
  let at = 0
  const take = (length: number): Buffer => {
    at += length
    return bytes.subarray(at - length, at)
  }
  /** compact-u16: seven bits a byte, the least significant first. */
  const length = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = take(1)[0] ?? 0
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  take(64 * length())
  if ((bytes[at] ?? 0) >= 0x80) take(1)
  take(3)
  const keys = Array.from({ length: length() }, () => base58(take(32)))
  take(32)
  return Array.from({ length: length() }, () => {
    const program = keys[take(1)[0] ?? -1] ?? ''
    const accounts = [...take(length())].map((index) => keys[index] ?? '')
    return actionOf(program, accounts, take(length()))
  })
}

function actionOf(program: string, accounts: readonly string[], data: Buffer): Action {
  const [first = '', second = ''] = accounts
  if (program === budgetProgram) return { is: 'nothing' }
  const tag = data.length < 4 ? -1 : data.readUInt32LE(0)
  if (program === systemProgram) {
    if (tag === 0) return { is: 'create', payer: first, account: second, lamports: data.readBigUInt64LE(4) }
    if (tag === 2) return { is: 'transfer', from: first, to: second, lamports: data.readBigUInt64LE(4) }
    // createAccountWithSeed: base (32), seed (its length in 8 bytes, then the text), lamports.
    if (tag === 3)
      return { is: 'create', payer: first, account: second, lamports: data.readBigUInt64LE(44 + Number(data.readBigUInt64LE(36))) }
    if (tag === 8 || tag === 9 || tag === 1 || tag === 10) return { is: 'nothing' }
  }
  if (program === stakeProgram) {
    if (tag === 0)
      return { is: 'initialize', account: first, staker: base58(data.subarray(4, 36)), withdrawer: base58(data.subarray(36, 68)) }
    if (tag === 9) return { is: 'initialize', account: first, staker: accounts[2] ?? '', withdrawer: accounts[3] ?? '' }
    if (tag === 2) return { is: 'delegate', account: first, vote: second }
    if (tag === 4) return { is: 'withdraw', account: first, to: second, lamports: data.readBigUInt64LE(4) }
    if (tag === 5) return { is: 'deactivate', account: first }
  }
  return { is: 'unknown', what: `${program} ${data.toString('hex')}` }
}
