import { describe, expect, test } from 'vitest'
import { computeBudgetProgram, stakeProgram, systemProgram } from './programs.ts'
import { describeFailure, type FailureMeaning, meaningOf, readTransactionError } from './transaction-error.ts'

const programs = [computeBudgetProgram, systemProgram, stakeProgram, stakeProgram]
const at = (index: number, reason: unknown) => ({ InstructionError: [index, reason] })

describe('a transaction error', () => {
  test.each<{ error: unknown; meaning: FailureMeaning; text: string }>([
    { error: 'BlockhashNotFound', meaning: 'blockhash-not-found', text: 'BlockhashNotFound' },
    { error: 'AlreadyProcessed', meaning: 'already-processed', text: 'AlreadyProcessed' },
    { error: 'AccountNotFound', meaning: 'insufficient-funds', text: 'AccountNotFound' },
    { error: 'InsufficientFundsForFee', meaning: 'insufficient-funds', text: 'InsufficientFundsForFee' },
    { error: { InsufficientFundsForRent: { account_index: 1 } }, meaning: 'insufficient-funds', text: 'InsufficientFundsForRent' },
    { error: 'SignatureFailure', meaning: 'signature-failure', text: 'SignatureFailure' },
    { error: 'AccountInUse', meaning: 'busy', text: 'AccountInUse' },
    { error: at(1, { Custom: 0 }), meaning: 'account-in-use', text: 'instruction 2: Custom 0' },
    { error: at(1, { Custom: 1 }), meaning: 'insufficient-funds', text: 'instruction 2: Custom 1' },
    { error: at(2, { Custom: 1 }), meaning: 'lockup-in-force', text: 'instruction 3: Custom 1' },
    { error: at(2, { Custom: 2 }), meaning: 'already-deactivated', text: 'instruction 3: Custom 2' },
    { error: at(3, { Custom: 3 }), meaning: 'too-soon-to-redelegate', text: 'instruction 4: Custom 3' },
    { error: at(3, { Custom: 12 }), meaning: 'insufficient-delegation', text: 'instruction 4: Custom 12' },
    { error: at(3, { Custom: 16 }), meaning: 'epoch-rewards', text: 'instruction 4: Custom 16' },
    { error: at(3, { Custom: 99 }), meaning: 'failed', text: 'instruction 4: Custom 99' },
    { error: at(9, { Custom: 16 }), meaning: 'failed', text: 'instruction 10: Custom 16' },
    { error: at(0, { Custom: 16 }), meaning: 'failed', text: 'instruction 1: Custom 16' },
    { error: at(2, 'InsufficientFunds'), meaning: 'insufficient-funds', text: 'instruction 3: InsufficientFunds' },
    { error: at(2, 'MissingRequiredSignature'), meaning: 'wrong-authority', text: 'instruction 3: MissingRequiredSignature' },
    { error: at(1, 'AccountAlreadyInitialized'), meaning: 'account-in-use', text: 'instruction 2: AccountAlreadyInitialized' },
    { error: 'Something new', meaning: 'failed', text: 'Unknown' },
    { error: {}, meaning: 'failed', text: 'Unknown' },
    { error: 7, meaning: 'failed', text: 'Unknown' },
    { error: at(1, null), meaning: 'failed', text: 'instruction 2: Unknown' },
  ])('$error means $meaning', ({ error, meaning, text }) => {
    const failure = readTransactionError(error)
    if (failure === undefined) throw new Error('no failure')
    expect(meaningOf(failure, programs)).toBe(meaning)
    expect(describeFailure(failure)).toBe(text)
  })

  test.each([null, undefined])('%j is none', (error) => {
    expect(readTransactionError(error)).toBeUndefined()
  })

  test('of a program is not guessed without the program', () => {
    expect(meaningOf({ name: 'Custom', instruction: 0, custom: 0 })).toBe('failed')
  })
})
