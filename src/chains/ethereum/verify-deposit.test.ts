import { describe, expect, test } from 'vitest'
import { gwei, gweiToWei, wei } from '../../lib/amounts.ts'
import type { Address } from './chain.ts'
import { encodeDepositCalldata, signDepositMessage, withdrawalCredentials } from './deposit.ts'
import { knownNetworks } from './networks.ts'
import {
  type ClaimedDeposit,
  type ClaimedTransaction,
  type ExpectedDeposit,
  rememberingSignatures,
  verifyDeposit,
} from './verify-deposit.ts'

const hoodi = knownNetworks.hoodi as NonNullable<(typeof knownNetworks)[string]>
const mainnet = knownNetworks.mainnet as NonNullable<(typeof knownNetworks)[string]>
const withdrawalAddress: Address = '0x52908400098527886E0F7030069857D2E4169EE7'
const other: Address = '0x8617E340B3D01FA5F11F306F4090FD50E238070D'
const amountGwei = gwei(40_000_000_000n)
const key = new Uint8Array(32).fill(7)
const expected: ExpectedDeposit = { withdrawalAddress, credentialsType: '0x02', amountGwei, network: hoodi }

/** A service's answer: right unless told otherwise, and consistent in itself. */
function answer(
  of: Partial<{ address: Address; type: '0x01' | '0x02'; amount: bigint; fork: `0x${string}`; signingKey: Uint8Array }> = {},
) {
  const signed = signDepositMessage(of.signingKey ?? key, {
    withdrawalCredentials: withdrawalCredentials(of.type ?? '0x02', of.address ?? withdrawalAddress),
    amountGwei: gwei(of.amount ?? amountGwei),
    genesisForkVersion: of.fork ?? hoodi.genesisForkVersion,
  })
  const depositData: ClaimedDeposit = {
    ...signed,
    forkVersion: hoodi.genesisForkVersion,
    depositContractAddress: hoodi.depositContractAddress,
    chainId: hoodi.chainId,
  }
  const unsignedTransaction: ClaimedTransaction = {
    chainId: hoodi.chainId,
    to: hoodi.depositContractAddress,
    data: encodeDepositCalldata(signed),
    valueWei: gweiToWei(signed.amountGwei),
  }
  return { depositData, unsignedTransaction }
}
type Answer = ReturnType<typeof answer>
const data = (change: Partial<ClaimedDeposit>) => ({ ...answer(), depositData: { ...answer().depositData, ...change } })
const transaction = (change: Partial<ClaimedTransaction>) => ({
  ...answer(),
  unsignedTransaction: { ...answer().unsignedTransaction, ...change },
})
const codes = (claimed: Answer, want = expected) => verifyDeposit({ expected: want, ...claimed }).map(({ code }) => code)
const flip = (hex: `0x${string}`): `0x${string}` => `0x${hex.slice(2, -1)}${hex.endsWith('0') ? '1' : '0'}`

test('a right answer has no mismatch', () => {
  expect(codes(answer())).toEqual([])
})

test('the case of hex does not matter', () => {
  const { depositData, unsignedTransaction } = answer()
  const upper = <T extends string>(text: T) => `0x${text.slice(2).toUpperCase()}` as `0x${string}`
  expect(
    codes({
      depositData: {
        ...depositData,
        withdrawalCredentials: upper(depositData.withdrawalCredentials),
        depositContractAddress: upper(depositData.depositContractAddress),
      },
      unsignedTransaction: { ...unsignedTransaction, to: upper(unsignedTransaction.to), data: upper(unsignedTransaction.data) },
    }),
  ).toEqual([])
})

describe('each wrong answer is named', () => {
  const { depositData, unsignedTransaction } = answer()
  const someoneElses = answer({ address: other })
  test.each<{ name: string; claimed: Answer; expected: string[] }>([
    // Consistent answers for something else: the service is wrong, or not ours.
    { name: 'the money returns to another address', claimed: someoneElses, expected: ['wrong-credentials'] },
    { name: 'the other type of credentials', claimed: answer({ type: '0x01' }), expected: ['wrong-credentials'] },
    { name: 'a smaller amount, consistently', claimed: answer({ amount: 32_000_000_000n }), expected: ['wrong-amount', 'wrong-value'] },
    { name: 'one gwei more', claimed: answer({ amount: 40_000_000_001n }), expected: ['wrong-amount', 'wrong-value'] },
    { name: 'signed for mainnet', claimed: answer({ fork: mainnet.genesisForkVersion }), expected: ['invalid-signature'] },
    // One field changed.
    { name: 'another fork version', claimed: data({ forkVersion: '0x00000000' }), expected: ['wrong-fork-version'] },
    { name: 'another contract in the deposit data', claimed: data({ depositContractAddress: other }), expected: ['wrong-contract'] },
    { name: 'another chain id in the deposit data', claimed: data({ chainId: 1 }), expected: ['wrong-chain'] },
    {
      name: 'another message root',
      claimed: data({ depositMessageRoot: flip(depositData.depositMessageRoot) }),
      expected: ['wrong-message-root'],
    },
    { name: 'another data root', claimed: data({ depositDataRoot: flip(depositData.depositDataRoot) }), expected: ['wrong-data-root'] },
    {
      name: "another key's signature",
      claimed: data({ signature: answer({ signingKey: new Uint8Array(32).fill(8) }).depositData.signature }),
      expected: ['invalid-signature', 'wrong-data-root', 'wrong-calldata'],
    },
    {
      name: 'a signature that is no point',
      claimed: data({ signature: `0x${'11'.repeat(96)}` }),
      expected: ['invalid-signature', 'wrong-data-root', 'wrong-calldata'],
    },
    {
      name: 'a signature of the wrong length',
      claimed: data({ signature: '0x1234' }),
      expected: ['invalid-signature', 'wrong-data-root', 'wrong-calldata'],
    },
    {
      name: 'a public key that is no point',
      claimed: data({ pubkey: `0x8a${'11'.repeat(47)}` as const }),
      expected: ['invalid-pubkey', 'invalid-signature', 'wrong-message-root', 'wrong-data-root', 'wrong-calldata'],
    },
    {
      name: 'credentials of the wrong length',
      claimed: data({ withdrawalCredentials: '0x02' }),
      expected: ['wrong-credentials', 'invalid-signature', 'wrong-message-root', 'wrong-data-root', 'wrong-calldata'],
    },
    {
      name: 'nothing but text',
      claimed: data({ pubkey: 'zzz' as never }),
      expected: ['invalid-pubkey', 'invalid-signature', 'wrong-message-root', 'wrong-data-root', 'wrong-calldata'],
    },
    { name: 'a transaction on another chain', claimed: transaction({ chainId: 1 }), expected: ['wrong-chain'] },
    { name: 'a transaction to another contract', claimed: transaction({ to: other }), expected: ['wrong-contract'] },
    {
      name: 'a transaction with one wei more',
      claimed: transaction({ valueWei: wei(unsignedTransaction.valueWei + 1n) }),
      expected: ['wrong-value'],
    },
    { name: 'a transaction with no value', claimed: transaction({ valueWei: wei(0n) }), expected: ['wrong-value'] },
    {
      name: "the calldata of someone else's deposit",
      claimed: transaction({ data: someoneElses.unsignedTransaction.data }),
      expected: ['wrong-calldata'],
    },
    { name: 'calldata with a byte more', claimed: transaction({ data: `${unsignedTransaction.data}00` }), expected: ['wrong-calldata'] },
    { name: 'no calldata: a plain transfer', claimed: transaction({ data: '0x' }), expected: ['wrong-calldata'] },
  ])('$name', ({ claimed, expected: wanted }) => {
    expect(codes(claimed)).toEqual(wanted)
  })
})

test('all that is wrong is named, not only the first', () => {
  const claimed = { ...answer({ address: other, fork: '0x00000000', amount: 1n }) }
  expect(codes(claimed)).toEqual(['wrong-credentials', 'wrong-amount', 'invalid-signature', 'wrong-value'])
})

test('a message quotes what was expected, and nothing of the answer', () => {
  const mismatches = verifyDeposit({
    expected,
    ...answer({ address: other }),
    unsignedTransaction: { chainId: 1, to: other, data: '0xdeadbeef', valueWei: wei(1n) },
  })
  const text = mismatches.map(({ message }) => message.toLowerCase()).join('\n')
  expect(text).toContain(withdrawalAddress.slice(2).toLowerCase())
  expect(text).not.toContain(other.slice(2).toLowerCase())
  expect(text).not.toContain('deadbeef')
})

test('an address that nobody can spend from is refused, though the answer is as was asked for', () => {
  const lost: Address = '0x00000961Ef480Eb55e80D19ad83579A64c007002'
  expect(codes(answer({ address: lost }), { ...expected, withdrawalAddress: lost })).toEqual(['unspendable-address'])
})

describe('signatures that are remembered', () => {
  const { depositData } = answer()
  const asked: string[] = []
  const counting = (holds: boolean) => {
    asked.length = 0
    return rememberingSignatures((data) => {
      asked.push(data.signature)
      return holds
    })
  }

  test('a right one is verified once', () => {
    const isSigned = counting(true)
    expect([isSigned(depositData, hoodi.genesisForkVersion), isSigned(depositData, hoodi.genesisForkVersion)]).toEqual([true, true])
    expect(asked).toHaveLength(1)
  })

  test('a wrong one is verified each time', () => {
    const isSigned = counting(false)
    expect([isSigned(depositData, hoodi.genesisForkVersion), isSigned(depositData, hoodi.genesisForkVersion)]).toEqual([false, false])
    expect(asked).toHaveLength(2)
  })

  test.each<{ what: string; change: Partial<ClaimedDeposit>; fork?: `0x${string}` }>([
    { what: 'another public key', change: { pubkey: `0x${'ab'.repeat(48)}` as const } },
    { what: 'other credentials', change: { withdrawalCredentials: `0x${'02'.repeat(32)}` } },
    { what: 'another amount', change: { amountGwei: gwei(amountGwei + 1n) } },
    { what: 'another signature', change: { signature: `0x${'cd'.repeat(96)}` } },
    { what: 'another network', change: {}, fork: mainnet.genesisForkVersion },
  ])('a right one says nothing of one for $what', ({ change, fork }) => {
    const isSigned = rememberingSignatures()
    expect(isSigned(depositData, hoodi.genesisForkVersion)).toBe(true)
    expect(isSigned({ ...depositData, ...change }, fork ?? hoodi.genesisForkVersion)).toBe(false)
  })
})
