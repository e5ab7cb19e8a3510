import { expect, test } from 'vitest'
import { systemClock } from '../../../lib/clock.ts'
import { KeyError } from '../../ports.ts'
import { createGate } from './gate.ts'

const never = new AbortController().signal
const hang = () => new Promise<never>(() => {})

function gateOf(timeoutMs: number) {
  const outcomes: string[] = []
  const gate = createGate({
    name: 'hot',
    clock: systemClock,
    timeoutMs,
    onCall: (operation, outcome) => void outcomes.push(`${operation} ${outcome}`),
  })
  const codeOf = (work: Promise<unknown>) =>
    work.then(
      () => 'ok',
      (error: unknown) => (error instanceof KeyError ? error.code : String(error)),
    )
  return { gate, outcomes, codeOf }
}

test('a signer that answers, however slowly, serves all that wait for a turn', async () => {
  const { gate } = gateOf(1_800)
  let [running, most] = [0, 0]
  const slow = async () => {
    most = Math.max(most, ++running)
    await systemClock.sleep(500, never)
    running -= 1
    return 'signed'
  }
  // Four times sixteen: the last of them waits longer than one call may take.
  expect(new Set(await Promise.all(Array.from({ length: 64 }, () => gate.run('sign', slow, never))))).toEqual(new Set(['signed']))
  expect(most).toBe(16)
})

test('one that hangs costs all of them one time-out together, and only sixteen calls', async () => {
  const { gate, codeOf } = gateOf(1_500)
  let asked = 0
  const begin = performance.now()
  const codes = await Promise.all(
    Array.from({ length: 64 }, () =>
      codeOf(
        gate.run(
          'sign',
          () => {
            asked += 1
            return hang()
          },
          never,
        ),
      ),
    ),
  )
  expect(new Set(codes)).toEqual(new Set(['unavailable']))
  expect(asked).toBe(16)
  // One after another, they would take four of them.
  expect(performance.now() - begin).toBeLessThan(5_500)
})

test('left alone, it is tried by a single call, and an answer lets all others through', async () => {
  const { gate, outcomes, codeOf } = gateOf(500)
  expect(await codeOf(gate.run('sign', hang, never))).toBe('unavailable')
  expect(await codeOf(gate.run('sign', async () => 'signed', never))).toBe('unavailable')
  expect(outcomes).toEqual(['sign unavailable', 'sign left-alone'])
  await systemClock.sleep(1_050, never)
  const answer = Promise.withResolvers<string>()
  const trial = gate.run('sign', () => answer.promise, never)
  expect(await codeOf(gate.run('sign', async () => 'signed', never))).toBe('unavailable')
  answer.resolve('signed')
  expect(await trial).toBe('signed')
  expect(await gate.run('sign', async () => 'signed', never)).toBe('signed')
})

test('a refusal is an answer; whoever leaves is no failure', async () => {
  const { gate, codeOf } = gateOf(5_000)
  const refused = async () => {
    throw new KeyError('refused', 'no')
  }
  expect(await codeOf(gate.run('sign', refused, never))).toBe('refused')
  const leaving = new AbortController()
  const left = codeOf(gate.run('sign', hang, leaving.signal))
  leaving.abort('the lease was lost')
  expect(await left).toBe('the lease was lost')
  expect(await gate.run('sign', async () => 'signed', never)).toBe('signed')
})

test('whoever leaves while it waits for a turn takes nobody else’s', async () => {
  const { gate, codeOf } = gateOf(5_000)
  const end = Promise.withResolvers<void>()
  const running = Array.from({ length: 16 }, () => gate.run('sign', () => end.promise, never))
  const leaving = new AbortController()
  const left = codeOf(gate.run('sign', async () => 'x', leaving.signal))
  const stays = gate.run('sign', async () => 'signed', never)
  leaving.abort('gone')
  expect(await left).toBe('gone')
  end.resolve()
  await Promise.all(running)
  expect(await stays).toBe('signed')
  // All sixteen turns are there again.
  expect(await Promise.all(Array.from({ length: 20 }, () => gate.run('sign', async () => 1, never)))).toHaveLength(20)
})
