import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sha256, toHex } from 'viem'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import type { Anvil } from '../anvil.ts'
import { answer } from './api.ts'
import { addValidator } from './epoch.ts'
import { blockByNumber, REQUEST_CONTRACT, readBlocks } from './execution.ts'
import { createMachine, type RequestRecord } from './machine.ts'
import { defaultSpec, type SimulatorSpec } from './spec.ts'
import { currentEpoch, genesisState, indexOf, initiateValidatorExit, type SimulatedState } from './state.ts'
import type { Withdrawal } from './withdrawals.ts'

export interface SimulatorOptions {
  readonly anvil: Anvil
  readonly spec?: Partial<SimulatorSpec>
  /**
   * `manual` (default): each block of the execution layer is one slot, and `advance…` jumps; nothing else moves. Its time of day is an hour ahead of
   * the real one, so that it is never taken for one that lags. `clock`: slots by the time of day, with or without blocks.
   */
  readonly time?: 'manual' | 'clock'
  /** Validators that are active from genesis. */
  readonly validators?: readonly { readonly pubkey: Hex; readonly withdrawalCredentials: Hex; readonly amountGwei: bigint }[]
}

export interface BeaconSimulator {
  /** Base URL of its Beacon API. */
  readonly url: string
  readonly spec: SimulatorSpec
  readonly genesisTime: number
  slot(): Promise<number>
  epoch(): Promise<number>
  advanceSlots(count: number): Promise<void>
  /** To the first slot of the epoch so many epochs on. */
  advanceEpochs(count: number): Promise<void>
  /** Epoch by epoch, until a validator has one of these statuses. @throws after `limit` epochs (default 64). */
  advanceUntil(pubkey: Hex, statuses: readonly string[], limit?: number): Promise<void>
  /** Reads the execution layer and pays what is due. The API does so before each answer. */
  sync(): Promise<void>
  /** Every EIP-7002 request so far with what became of it, which a real node doesn't tell. */
  requests(): Promise<readonly RequestRecord[]>
  withdrawals(): Promise<readonly Withdrawal[]>
  /** Public keys whose deposits were lost, as their signatures were wrong. */
  lostDeposits(): Promise<readonly Hex[]>
  /** Sets a balance, as rewards or penalties would; the effective balance follows at the end of the epoch. */
  setBalance(pubkey: Hex, gwei: bigint): Promise<void>
  slash(pubkey: Hex): Promise<void>
  /** Whether epochs become final. Deposits and activations wait for finality. */
  setFinality(on: boolean): void
  /** Answers as a node that is so many slots behind and says so; 0 ends it. */
  setBehind(slots: number): void
  /** Sets what the EIP-7002 contract counts as excess, which makes its fee. */
  setRequestExcess(excess: bigint): Promise<void>
  stop(): Promise<void>
}

const HOUR = 3_600

/**
 * A beacon chain in memory: a SIMULATOR, and not a client. It reads deposits and EIP-7002 requests from anvil's blocks, applies the rules of
 * consensus-specs (Electra) to them, serves the Beacon API that the project uses, and pays by raising anvil's balances. There are no proposers,
 * attestations or rewards: everyone is taken to attest. The truth is test/devnet; where they differ, this is wrong.
 */
export async function startBeaconSimulator(options: SimulatorOptions): Promise<BeaconSimulator> {
  const { anvil, time = 'manual' } = options
  const spec: SimulatorSpec = { ...defaultSpec, DEPOSIT_CHAIN_ID: anvil.chainId, ...options.spec }
  const seconds = (): number => Math.floor(Date.now() / 1000)

  // The chain that was there before genesis is read at genesis: its deposits are in the first queue.
  const before = await blockByNumber(anvil, 'latest')
  const genesisTime = Math.max((before?.timestamp ?? 0) + 1, seconds() + (time === 'manual' ? HOUR : 0))
  const blockPerSlot = (): Promise<unknown> => anvil.rpc('anvil_setBlockTimestampInterval', [spec.SECONDS_PER_SLOT])
  await anvil.rpc('evm_setNextBlockTimestamp', [genesisTime])
  await anvil.mine()
  if (time === 'manual') await blockPerSlot()

  const genesis = genesisState({ number: -1, hash: '0x' })
  for (const { pubkey, withdrawalCredentials, amountGwei } of options.validators ?? []) {
    const validator = addValidator(genesis, spec, { pubkey, withdrawalCredentials, amount: amountGwei })
    validator.activationEligibilityEpoch = 0
    validator.activationEpoch = 0
  }
  const machine = createMachine(spec, genesis)
  const validatorsRoot = sha256(toHex(`simulator ${genesisTime}`))
  let behind = 0
  /** In clock mode: seconds that `advance…` has added. */
  let ahead = 0
  const slotOf = (timestamp: number): number => Math.max(0, Math.floor((timestamp - genesisTime) / spec.SECONDS_PER_SLOT))

  /** A slot's block has the slot's time; anvil's clock goes back by what it throws away in a reorganisation, and by all that was added when it starts again. */
  const keepTime = async (latest: { readonly timestamp: number }): Promise<void> => {
    const now = seconds() + ahead
    if (now - latest.timestamp > 2 * spec.SECONDS_PER_SLOT) await anvil.rpc('evm_setTime', [now])
  }

  const read = async (): Promise<void> => {
    const latest = await blockByNumber(anvil, 'latest')
    if (latest === undefined) return
    if (time === 'clock') await keepTime(latest)
    const { executed } = machine.state()
    if (executed.number >= 0 && (await blockByNumber(anvil, executed.number))?.hash !== executed.hash) {
      const canonical = new Map<number, Hex>()
      for (let number = executed.number; number >= 0 && number > executed.number - 64; number -= 1) {
        const block = await blockByNumber(anvil, number)
        if (block !== undefined) canonical.set(number, block.hash)
      }
      machine.rollBack(({ number, hash }) => number < 0 || canonical.get(number) === hash)
    }
    const from = machine.state().executed.number + 1
    if (from <= latest.number) {
      for (const block of await readBlocks(anvil, from, latest.number)) machine.execute(block, slotOf(block.timestamp))
    }
    if (time === 'clock') machine.advanceTo(slotOf(seconds() + ahead))
    for (const { address, amount } of machine.takePayments()) {
      await anvil.rpc('anvil_addBalance', [address, toHex(amount * 1_000_000_000n)])
    }
  }
  let last: Promise<void> = Promise.resolve()
  /** One at a time. */
  const sync = (): Promise<void> => {
    last = last.catch(() => {}).then(read)
    return last
  }

  const advanceTo = async (slot: number): Promise<void> => {
    await sync()
    const gap = slot - machine.state().slot
    if (gap <= 0) return
    if (time === 'clock') {
      ahead += gap * spec.SECONDS_PER_SLOT
      await anvil.rpc('evm_increaseTime', [gap * spec.SECONDS_PER_SLOT])
      await anvil.mine()
    } else {
      // The last few slots have blocks, so that anvil's own finality moves too; those before are without.
      const blocks = Math.min(gap, 3)
      await anvil.rpc('evm_setNextBlockTimestamp', [genesisTime + (slot - blocks + 1) * spec.SECONDS_PER_SLOT])
      await anvil.mine(blocks)
    }
    await sync()
  }
  const synced = async <T>(look: (state: SimulatedState) => T): Promise<T> => {
    await sync()
    return look(machine.state())
  }
  const known = (state: SimulatedState, pubkey: Hex): number => {
    const index = indexOf(state, pubkey)
    if (index === undefined) throw new Error(`the simulator knows no validator ${pubkey.slice(0, 12)}…`)
    return index
  }

  const server = createServer((request, response) => {
    const respond = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    const url = new URL(request.url ?? '/', 'http://simulator')
    sync().then(
      () => {
        const { status, body } =
          request.method === 'GET'
            ? answer({ spec, machine, genesis: { time: genesisTime, validatorsRoot }, behind }, url.pathname, url.searchParams)
            : { status: 405, body: { code: 405, message: 'the simulator only answers GET' } }
        respond(status, body)
      },
      (error: unknown) => respond(500, { code: 500, message: `the simulator could not read its chain: ${String(error)}` }),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  // Payments come without anyone asking, too.
  const timer = time === 'clock' ? setInterval(() => void sync().catch(() => {}), (spec.SECONDS_PER_SLOT * 1000) / 2) : undefined
  timer?.unref()
  await sync()

  const simulator: BeaconSimulator = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spec,
    genesisTime,
    slot: () => synced(({ slot }) => slot),
    epoch: () => synced((state) => currentEpoch(state, spec)),
    advanceSlots: async (count) => advanceTo((await simulator.slot()) + count),
    advanceEpochs: async (count) => advanceTo(((await simulator.epoch()) + count) * spec.SLOTS_PER_EPOCH),
    advanceUntil: async (pubkey, statuses, limit = 64) => {
      for (let epochs = 0; epochs <= limit; epochs += 1) {
        const response = await fetch(`${simulator.url}/eth/v1/beacon/states/head/validators?id=${pubkey}`)
        const { data } = (await response.json()) as { data: { status: string }[] }
        if (data.some(({ status }) => statuses.includes(status))) return
        await simulator.advanceEpochs(1)
      }
      throw new Error(`${pubkey.slice(0, 12)}… is not ${statuses.join(' or ')} after ${limit} epochs`)
    },
    sync,
    requests: () => synced(() => [...machine.requests]),
    withdrawals: () => synced(() => [...machine.withdrawals]),
    lostDeposits: () => synced(() => machine.lostDeposits.map(({ deposit }) => deposit.pubkey)),
    setBalance: async (pubkey, gwei) => {
      await sync()
      machine.change((state) => {
        state.balances[known(state, pubkey)] = gwei
      })
    },
    slash: async (pubkey) => {
      await sync()
      machine.change((state) => {
        const index = known(state, pubkey)
        const validator = state.validators[index]
        if (validator === undefined) return
        // consensus-specs, electra/beacon-chain.md: slash_validator.
        initiateValidatorExit(state, spec, validator)
        validator.slashed = true
        validator.withdrawableEpoch = Math.max(validator.withdrawableEpoch, currentEpoch(state, spec) + spec.EPOCHS_PER_SLASHINGS_VECTOR)
        state.balances[index] = (state.balances[index] ?? 0n) - validator.effectiveBalance / spec.MIN_SLASHING_PENALTY_QUOTIENT_ELECTRA
      })
    },
    setFinality: machine.setFinality,
    setBehind: (slots) => {
      behind = slots
    },
    setRequestExcess: async (excess) => {
      // EIP-7002: EXCESS_WITHDRAWAL_REQUESTS_STORAGE_SLOT is 0.
      await anvil.rpc('anvil_setStorageAt', [REQUEST_CONTRACT, toHex(0, { size: 32 }), toHex(excess, { size: 32 })])
    },
    stop: async () => {
      clearInterval(timer)
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
      await last.catch(() => {})
    },
  }
  return simulator
}
