import { describe, expect, test } from 'vitest'
import type { Hex } from '../../../chains/ethereum/chain.ts'
import { attribute, type Claimant } from './attribution.ts'

const hash = (block: number): Hex => `0x${block.toString(16).padStart(64, '0')}`
const sent = (...blocks: number[]) => blocks.map((block) => ({ hash: hash(block), blockNumber: BigInt(block) }))
const open = (id: string, quoted: number): Claimant => ({ id, quotedAtBlock: BigInt(quoted), isOpen: true })
const closed = (id: string, quoted: number): Claimant => ({ ...open(id, quoted), isOpen: false })

describe('whose a transaction is that nobody has reported', () => {
  test.each([
    { name: 'nobody’s where there is no request', blocks: [10], claimants: [], found: {}, unclear: {} },
    { name: 'that of the one request there is', blocks: [10], claimants: [open('a', 9)], found: { 10: 'a' }, unclear: {} },
    { name: 'not that of a request made after it', blocks: [10], claimants: [open('a', 11)], found: {}, unclear: {} },
    { name: 'unclear between two', blocks: [10], claimants: [open('a', 8), open('b', 9)], found: {}, unclear: { 10: ['a', 'b'] } },
    {
      name: 'that of each where there is one for each',
      blocks: [10, 12],
      claimants: [open('a', 8), open('b', 9)],
      found: { 10: 'a', 12: 'b' },
      unclear: {},
    },
    {
      name: 'that of the earlier request where the later one was made after it',
      blocks: [10],
      claimants: [open('a', 8), open('b', 11)],
      found: { 10: 'a' },
      unclear: {},
    },
    {
      name: 'unclear of a second one, when three may have made it',
      blocks: [10, 12],
      claimants: [open('a', 8), open('b', 11), open('c', 11)],
      found: { 10: 'a' },
      unclear: { 12: ['b', 'c'] },
    },
    {
      name: 'that of the open request beside a cancelled one',
      blocks: [10],
      claimants: [closed('a', 8), open('b', 9)],
      found: { 10: 'b' },
      unclear: {},
    },
    {
      name: 'that of a cancelled request where no open one may have made it',
      blocks: [10, 12],
      claimants: [closed('a', 8), open('b', 11)],
      found: { 10: 'a', 12: 'b' },
      unclear: {},
    },
    {
      name: 'unclear between two cancelled ones',
      blocks: [10],
      claimants: [closed('a', 8), closed('b', 8)],
      found: {},
      unclear: { 10: ['a', 'b'] },
    },
  ])('is $name', ({ blocks, claimants, found, unclear }) => {
    const given = attribute(sent(...blocks), claimants)
    expect(Object.fromEntries(given.found.map((one) => [Number(one.hash), one.id]))).toEqual(found)
    expect(Object.fromEntries(given.unclear.map((one) => [Number(one.hash), one.ids]))).toEqual(unclear)
  })
})
