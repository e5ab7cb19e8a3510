import { describe, expect, test } from 'vitest'
import { defineSteps, type Perform } from './step.ts'
import { visitNote } from './visit.ts'

/** Steps and effects are paired by their types: what is wrong here does not compile. */

interface Status {
  readonly made?: string
}
type Effects = {
  readonly make: { args: { readonly name: string }; result: { readonly id: string } }
}
type OtherEffects = {
  readonly make: { args: { readonly size: number }; result: { readonly id: string } }
}
const step = defineSteps<{ readonly name: string }, Status, Effects>()
const make = step({
  name: 'Make',
  done: (status) => status.made !== undefined,
  effect: 'make',
  args: ({ name }) => ({ name }),
  absorb: (status, { id }) => ({ ...status, made: id }),
})
const signal = new AbortController().signal

describe('a step', () => {
  test('gives its effect what it takes, and absorbs what it gives', async () => {
    const effects: Perform<Effects> = { make: async ({ name }) => ({ id: `${name}-1` }) }
    const absorbed = await make.take(effects, { name: 'stake' }, new Map(), signal)
    expect(absorbed({})).toEqual({ made: 'stake-1' })
  })

  test('absorbs what its effect had found out when it halted', () => {
    expect(make.learn({}, { id: 'found' })).toEqual({ made: 'found' })
  })

  test('is not taken with the effects of another kind', async () => {
    const others: Perform<OtherEffects> = { make: async ({ size }) => ({ id: String(size + 1) }) }
    // @ts-expect-error: they take something else.
    const absorbed = await make.take(others, { name: 'stake' }, new Map(), signal)
    expect(absorbed({}).made).not.toBe('stake-1')
  })

  test('does not take another effect’s arguments or results', () => {
    // @ts-expect-error: there is no such effect.
    step({ name: 'Other', done: () => true, effect: 'unmake', args: () => ({}), absorb: (status: Status) => status })
    // @ts-expect-error: the effect takes a name.
    step({ name: 'Other', done: () => true, effect: 'make', args: () => ({ size: 1 }), absorb: (status) => status })
    expect(make.effect).toBe('make')
  })
})

test('a visit’s note is read as it was written, and apart from others', () => {
  const said = visitNote<{ readonly id: string }>('said')
  const looked = visitNote<bigint>('looked')
  const visit = new Map()
  expect(said.of(visit)).toBeUndefined()
  expect(said.write(visit, { id: 'a' })).toEqual({ id: 'a' })
  looked.write(visit, 7n)
  expect([said.of(visit)?.id, looked.of(visit)]).toEqual(['a', 7n])
  said.erase(visit)
  expect([said.of(visit), looked.of(visit)]).toEqual([undefined, 7n])
})
