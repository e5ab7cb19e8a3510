import { sha256, toHex } from 'viem'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import type { BeaconMachine } from './machine.ts'
import { FAR_FUTURE, type SimulatorSpec } from './spec.ts'
import { currentEpoch, isActive, type SimulatedState, type SimulatedValidator } from './state.ts'

/** `message` as real nodes have it; the body is JSON. */
export interface ApiAnswer {
  readonly status: number
  readonly body: unknown
}

export interface ApiContext {
  readonly spec: SimulatorSpec
  readonly machine: BeaconMachine
  readonly genesis: { readonly time: number; readonly validatorsRoot: Hex }
  /** Slots that the node is behind; it answers as of then and says that it syncs. */
  readonly behind: number
}

/** Answers a GET as the Beacon API has it (ethereum/beacon-APIs). */
export function answer(context: ApiContext, path: string, query: URLSearchParams): ApiAnswer {
  const { spec, machine, genesis, behind } = context
  const head = Math.max(0, machine.state().slot - behind)
  const [, , version, ...parts] = path.split('/')
  const route = `${version}/${parts.join('/')}`
  const zero = `0x${'00'.repeat(32)}`
  switch (route) {
    case 'v1/node/version':
      return ok({ version: 'staking-operator-beacon-simulator/1.0 (not a beacon node)' })
    case 'v1/node/health':
      return { status: behind > 0 ? 206 : 200, body: {} }
    case 'v1/node/syncing':
      return ok({ head_slot: text(head), sync_distance: text(behind), is_syncing: behind > 0, is_optimistic: false, el_offline: false })
    case 'v1/beacon/genesis':
      return ok({
        genesis_time: text(genesis.time),
        genesis_validators_root: genesis.validatorsRoot,
        genesis_fork_version: spec.GENESIS_FORK_VERSION,
      })
    case 'v1/config/spec':
      return ok({
        CONFIG_NAME: 'simulator',
        PRESET_BASE: 'mainnet',
        SLOT_DURATION_MS: text(spec.SECONDS_PER_SLOT * 1000),
        ...Object.fromEntries(Object.entries(spec).map(([name, value]) => [name, text(value)])),
      })
    case 'v1/config/deposit_contract':
      return ok({ chain_id: text(spec.DEPOSIT_CHAIN_ID), address: spec.DEPOSIT_CONTRACT_ADDRESS })
  }
  const [, area = '', id = '', endpoint = '', only] = parts
  if (version !== 'v1' || parts[0] !== 'beacon' || !['states', 'headers'].includes(area)) return notFound('Not found')
  const slot = slotOf(id, head, context)
  // As Prysm has it.
  if (slot !== undefined && slot > head) return { status: 500, body: { code: 500, message: `slot ${slot} is in the future` } }
  const state = slot === undefined ? undefined : machine.stateAt(slot)
  if (state === undefined) return notFound(`State not found: ${id}`)
  const meta = { execution_optimistic: false, finalized: state.slot <= machine.state().finalizedEpoch * spec.SLOTS_PER_EPOCH }
  const found = (data: unknown): ApiAnswer => ({ status: 200, body: { ...meta, data } })
  const versioned = (data: unknown): ApiAnswer => ({ status: 200, body: { version: 'electra', ...meta, data } })
  if (area === 'headers') {
    const message = { slot: text(state.slot), proposer_index: '0', parent_root: zero, state_root: zero, body_root: zero }
    return found({ root: blockRootOf(state), canonical: true, header: { message, signature: `0x${'00'.repeat(96)}` } })
  }
  switch (endpoint) {
    case 'finality_checkpoints': {
      const checkpoint = (epoch: number) => ({ epoch: text(epoch), root: epoch === 0 ? zero : rootOf(epoch * spec.SLOTS_PER_EPOCH) })
      return found({
        previous_justified: checkpoint(Math.max(0, state.justifiedEpoch - 1)),
        current_justified: checkpoint(state.justifiedEpoch),
        finalized: checkpoint(state.finalizedEpoch),
      })
    }
    case 'validators': {
      const all = state.validators.map((validator, index) => validatorBody(state, spec, validator, index))
      if (only !== undefined) {
        const one = all.find(matches(only))
        return one === undefined ? notFound('Validator not found') : found(one)
      }
      const ids = list(query, 'id')
      const statuses = list(query, 'status')
      const general = (status: string) => status.split('_')[0] ?? ''
      return found(
        all.filter(
          (each) =>
            (ids.length === 0 || ids.some((wanted) => matches(wanted)(each))) &&
            (statuses.length === 0 || statuses.includes(each.status) || statuses.includes(general(each.status))),
        ),
      )
    }
    case 'pending_deposits':
      return versioned(
        state.pendingDeposits.map(({ pubkey, withdrawalCredentials, amount, signature, slot: at }) => ({
          pubkey,
          withdrawal_credentials: withdrawalCredentials,
          amount: text(amount),
          signature,
          slot: text(at),
        })),
      )
    case 'pending_partial_withdrawals':
      return versioned(
        state.pendingPartialWithdrawals.map(({ validatorIndex, amount, withdrawableEpoch }) => ({
          validator_index: text(validatorIndex),
          amount: text(amount),
          withdrawable_epoch: text(withdrawableEpoch),
        })),
      )
    case 'pending_consolidations':
      return versioned([])
    default:
      return notFound('Not found')
  }
}

function slotOf(id: string, head: number, { machine, spec }: ApiContext): number | undefined {
  const { justifiedEpoch, finalizedEpoch } = machine.stateAt(head) ?? machine.state()
  if (id === 'head') return head
  if (id === 'genesis') return 0
  if (id === 'finalized') return finalizedEpoch * spec.SLOTS_PER_EPOCH
  if (id === 'justified') return justifiedEpoch * spec.SLOTS_PER_EPOCH
  return /^\d{1,15}$/.test(id) ? Number(id) : undefined
}

function validatorBody(state: SimulatedState, spec: SimulatorSpec, validator: SimulatedValidator, index: number) {
  return {
    index: text(index),
    balance: text(state.balances[index] ?? 0n),
    status: statusOf(validator, currentEpoch(state, spec)),
    validator: {
      pubkey: validator.pubkey,
      withdrawal_credentials: validator.withdrawalCredentials,
      effective_balance: text(validator.effectiveBalance),
      slashed: validator.slashed,
      activation_eligibility_epoch: text(validator.activationEligibilityEpoch),
      activation_epoch: text(validator.activationEpoch),
      exit_epoch: text(validator.exitEpoch),
      withdrawable_epoch: text(validator.withdrawableEpoch),
    },
  }
}

/** The Beacon API's ValidatorStatus. Like Prysm, it tells a paid-out validator by its effective balance, which follows at the end of the epoch. */
export function statusOf(validator: SimulatedValidator, epoch: number): string {
  if (validator.activationEpoch > epoch)
    return validator.activationEligibilityEpoch === FAR_FUTURE ? 'pending_initialized' : 'pending_queued'
  if (isActive(validator, epoch)) {
    if (validator.slashed) return 'active_slashed'
    return validator.exitEpoch === FAR_FUTURE ? 'active_ongoing' : 'active_exiting'
  }
  if (epoch < validator.withdrawableEpoch) return validator.slashed ? 'exited_slashed' : 'exited_unslashed'
  return validator.effectiveBalance > 0n ? 'withdrawal_possible' : 'withdrawal_done'
}

const matches =
  (wanted: string) =>
  ({ index, validator }: ReturnType<typeof validatorBody>): boolean =>
    wanted === index || wanted.toLowerCase() === validator.pubkey
const list = (query: URLSearchParams, name: string): readonly string[] => query.getAll(name).flatMap((value) => value.split(','))
/** Any change of the state gives its block another root. */
const blockRootOf = (state: SimulatedState): Hex =>
  sha256(toHex(JSON.stringify(state, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))))
const rootOf = (slot: number): Hex => `0x${slot.toString(16).padStart(64, '0')}`
const text = (value: unknown): string => (value === FAR_FUTURE ? '18446744073709551615' : String(value))
const ok = (data: unknown): ApiAnswer => ({ status: 200, body: { data } })
const notFound = (message: string): ApiAnswer => ({ status: 404, body: { code: 404, message } })
