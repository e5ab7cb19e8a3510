import { describe, expect, test } from 'vitest'
import type { Standing } from '../../../chains/ethereum/request-queue.ts'
import { withEarlier } from './standing.ts'
import type { Decided, Dropped, Verdict } from './verdict.ts'

const accepted: Decided = { status: 'accepted', judgedAt: 17n, reason: 'of before' }
const dropped: Dropped = { status: 'dropped', judgedAt: 17n, rules: ['too-young'], reason: 'too-young: of before' }
const gone: Verdict = { status: 'pending', cannotTell: true, reason: 'the states are gone' }

const told = (earlier: Decided, standing: Standing, now: Verdict, isFinal = true) =>
  withEarlier(earlier, { isFinal, standing: async () => standing, judge: async () => now })
const never = () => Promise.reject(new Error('not asked'))

describe.each([{ earlier: accepted }, { earlier: dropped }])('what was $earlier.status by a block that is in the chain', ({ earlier }) => {
  test('is not judged again before that is final', async () => {
    expect(await withEarlier(earlier, { isFinal: false, standing: async () => 'stands', judge: never })).toBe(earlier)
    expect(await withEarlier(earlier, { isFinal: false, standing: async () => 'unknown', judge: never })).toBe(earlier)
  })
  test('stays when nothing can be told any more', async () => {
    expect(await told(earlier, 'stands', gone)).toEqual(earlier)
  })
  test.each<{ what: string; now: Verdict }>([
    { what: 'nobody answers', now: { ...gone, askAgain: true } },
    { what: 'a node that lags has no such block', now: { status: 'pending', askAgain: true } },
    { what: 'a node that lags says that it waits', now: { status: 'pending', reason: 'its turn is block 17' } },
  ])('stays, and is looked at again, when $what', async ({ now }) => {
    expect(await told(earlier, 'stands', now)).toEqual({ ...earlier, askAgain: true })
  })
  test('stays against what the head alone suggests: a later request of the same amount looks like it', async () => {
    const other: Verdict = earlier.status === 'accepted' ? { ...dropped, inferred: true } : { ...accepted, inferred: true }
    expect(await told(earlier, 'stands', other)).toEqual(earlier)
  })
  test('gives way to what the states show', async () => {
    const other: Verdict = earlier.status === 'accepted' ? dropped : accepted
    expect(await told(earlier, 'stands', other)).toEqual(other)
  })
  test.each<Standing>(['unknown', 'disputed'])('is not final while it is %s whether the block is in the chain', async (standing) => {
    expect(await told(earlier, standing, gone)).toEqual({ ...earlier, askAgain: true })
  })
})

describe.each([{ earlier: accepted }, { earlier: dropped }])(
  'what was $earlier.status by a block that has left the chain',
  ({ earlier }) => {
    test('is unknown again when the states of its new turn are gone, and says why', async () => {
      expect(await told(earlier, 'left', gone)).toEqual({
        ...gone,
        reason: `the states around block 17 said that it was ${earlier.status}, and that block has left the chain; the states are gone`,
      })
    })
    test.each([true, false])('is judged again (final: %s)', async (isFinal) => {
      const other: Verdict = { ...accepted, judgedAt: 18n, reason: 'anew' }
      expect(await told(earlier, 'left', other, isFinal)).toEqual(other)
      expect(await told(earlier, 'left', { ...other, inferred: true }, isFinal)).toEqual({ ...other, inferred: true })
    })
    test('waits for its turn again', async () => {
      const place = { position: 3n, turn: 18n }
      expect(await told(earlier, 'left', { status: 'pending', place }, false)).toEqual({
        status: 'pending',
        place,
        reason: expect.stringContaining('it is judged again'),
      })
    })
  },
)
