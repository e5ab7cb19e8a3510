import { ChainError, type DepositLog, type Hex } from '../../chains/ethereum/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import type { Store } from '../store/database.ts'
import { insertMark, missingStakesOf, moveMark, ownAddresses, ownPubkeys, takeMark, type UnknownDeposit } from '../store/missing-stakes.ts'
import { lookSoon } from '../store/stakes.ts'
import type { EthereumNetwork } from './networks.ts'
import { checksummed } from './rules.ts'
import { lookEveryMs } from './unreported-payments.ts'

/** Parts of a long way that are read in one pass: a copy of months ago is caught up with soon. */
const maxParts = 20
/** In one line of the log. */
const named = 10
const batch = 1_000

export interface MissingStakes {
  /** Goes on through the deposits of a network when it is due. What the chain can't tell now is looked for later. */
  pass(network: EthereumNetwork, signal: AbortSignal): Promise<void>
}

/**
 * Looks for stakes that the chain has and this database lacks: deposits to withdrawal addresses of its paid stakes, for validator keys that it does not know.
 * How far it has looked stands in the database itself. So a copy that is restored goes through all that happened since it was made, and nothing else. Which keys the
 * seed has can't be told from the chain: a key's index is a hash of the request. Stakes that it knows, and not as paid, are looked for among the deposits soon.
 */
export function createMissingStakes(deps: { store: Store; clock: Clock; log: Logger }): MissingStakes {
  const { clock, log } = deps
  const { db } = deps.store
  /** Networks of which this process has said what is missing. */
  const told = new Set<string>()

  async function unknownIn(network: string, deposits: readonly DepositLog[]): Promise<UnknownDeposit[]> {
    const addressed = deposits.flatMap((deposit) => {
      const address = withdrawalAddressOf(deposit)
      return address === undefined ? [] : [{ deposit, address }]
    })
    const addresses = await ownAddresses(db, network, [...new Set(addressed.map(({ address }) => address))])
    const candidates = addressed.filter(({ address }) => addresses.has(address))
    const known = await ownPubkeys(db, [...new Set(candidates.map(({ deposit }) => deposit.pubkey))])
    const first = new Map<Hex, UnknownDeposit>()
    for (const { deposit, address } of candidates) {
      const { pubkey, transactionHash: hash, blockNumber, amountGwei } = deposit
      if (known.has(pubkey) || first.has(pubkey)) continue
      const at = { network, pubkey, hash, block_number: blockNumber, withdrawal_address: address, amount_gwei: amountGwei }
      first.set(pubkey, { ...at, seen_at: clock.now(), dismissed_at: null })
    }
    return [...first.values()]
  }

  async function catchUp({ config, deposits }: EthereumNetwork, signal: AbortSignal): Promise<boolean> {
    if (deposits === undefined) return false
    const { name } = config
    const everyMs = lookEveryMs(config)
    const mark = await takeMark(db, name, everyMs)
    if (mark === undefined) return false
    if (mark === 'none') {
      await insertMark(db, name, await deposits.depositMark(signal))
      return true
    }
    let from = mark
    for (let part = 0; part < maxParts; part++) {
      const { mark: to, deposits: made } = await deposits.depositsAfter(from, signal)
      if (to.block === from.block) return true
      const found: UnknownDeposit[] = []
      for (let at = 0; at < made.length; at += batch) {
        const some = made.slice(at, at + batch)
        found.push(...(await unknownIn(name, some)))
        await lookSoon(db, { by: 'pubkey', of: some.map(({ pubkey }) => pubkey), withinMs: everyMs })
      }
      for (const deposit of await moveMark(db, name, { from, to }, found)) log.error(lineOf(deposit), message)
      from = to
    }
    return false
  }

  async function tell(network: string): Promise<void> {
    const missing = await missingStakesOf(db, network)
    told.add(network)
    if (missing.length === 0) return
    const line = { network, missing: missing.length, pubkeys: missing.slice(0, named).map(({ pubkey }) => pubkey) }
    log.error(line, 'stakes that the chain has are missing in the database: "staking-operator service missing-stakes" lists them')
  }

  return {
    async pass(network, signal) {
      const { name } = network.config
      try {
        const done = await catchUp(network, signal)
        if (done && !told.has(name)) await tell(name)
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        log.debug({ err: error, network: name }, 'the deposits of others could not be gone through; it tries again')
      }
    },
  }
}

const message =
  'a deposit to a withdrawal address of this service is for a validator key that its database does not know: was it restored from an older copy?'

const lineOf = ({ network, pubkey, hash, block_number, withdrawal_address }: UnknownDeposit) => ({
  ...{ network, pubkey, hash, blockNumber: block_number.toString(), withdrawalAddress: withdrawal_address },
})

/** Of credentials 0x01 and 0x02: the last 20 bytes. */
const withdrawalAddressOf = ({ withdrawalCredentials }: DepositLog): Hex | undefined =>
  /^0x0[12]0{22}[0-9a-f]{40}$/i.test(withdrawalCredentials) ? checksummed(`0x${withdrawalCredentials.slice(26)}`) : undefined
