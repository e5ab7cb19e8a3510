import { describe, expect, test } from 'vitest'
import type { KubeObject } from './objects.ts'
import { createOwnWrites } from './own-writes.ts'
import type { ResourceClient, WatchEvent } from './resource-client.ts'

type Thing = KubeObject
const thing = (name: string, resourceVersion: string): Thing => ({
  apiVersion: 'test/v1',
  kind: 'Thing',
  metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion },
})
const event = (
  type: 'ADDED' | 'MODIFIED' | 'DELETED',
  name: string,
  resourceVersion: string,
): Exclude<WatchEvent<Thing>, { type: 'BOOKMARK' }> => ({
  type,
  object: thing(name, resourceVersion),
})

/** A client whose writes are answered when the test says so. */
function setUp() {
  const answers: PromiseWithResolvers<Thing>[] = []
  const answer = (): Promise<Thing> => {
    const one = Promise.withResolvers<Thing>()
    answers.push(one)
    return one.promise
  }
  const passed: string[] = []
  const client = { create: answer, mergePatch: answer } as unknown as ResourceClient<Thing>
  const own = createOwnWrites(client, ({ type, object: { metadata } }, isOwn) =>
    passed.push(`${type} ${metadata.name} ${metadata.resourceVersion}${isOwn ? ' (own)' : ''}`),
  )
  const { signal } = new AbortController()
  const patch = (name: string) => own.client.mergePatch({ namespace: 'ns', name }, {}, { resourceVersion: '1' }, signal)
  return { own, answers, passed, patch, signal }
}

describe('a watch that is faster than the answer to a write', () => {
  test('shows it as own, and what somebody else wrote right after it as theirs', async () => {
    const { own, answers, passed, patch } = setUp()
    const written = patch('a')
    own.take(event('MODIFIED', 'a', '2'))
    own.take(event('MODIFIED', 'a', '3'))
    expect(passed).toEqual([])
    answers[0]?.resolve(thing('a', '2'))
    await written
    expect(passed).toEqual(['MODIFIED a 2 (own)', 'MODIFIED a 3'])
  })

  test('shows what somebody else wrote before it as theirs, where it is refused for that', async () => {
    const { own, answers, passed, patch } = setUp()
    const written = patch('a')
    own.take(event('MODIFIED', 'a', '2'))
    answers[0]?.reject(new Error('409'))
    await expect(written).rejects.toThrow('409')
    expect(passed).toEqual(['MODIFIED a 2'])
  })

  test('shows a deletion that came between as it is', async () => {
    const { own, answers, passed, patch } = setUp()
    const written = patch('a')
    own.take(event('MODIFIED', 'a', '2'))
    own.take(event('DELETED', 'a', '3'))
    answers[0]?.resolve(thing('a', '2'))
    await written
    expect(passed).toEqual(['MODIFIED a 2 (own)', 'DELETED a 3'])
  })

  test('has told of a new object before its maker goes on', async () => {
    const { own, answers, passed, signal } = setUp()
    const made = own.client.create({ apiVersion: 'test/v1', kind: 'Thing', metadata: { name: 'a', namespace: 'ns' } }, signal)
    own.take(event('ADDED', 'a', '2'))
    answers[0]?.resolve(thing('a', '2'))
    await made
    expect(passed).toEqual(['ADDED a 2 (own)'])
  })
})

test('two writes of one object under way are told apart from others by both of their answers', async () => {
  const { own, answers, passed, patch } = setUp()
  const both = [patch('a'), patch('a')]
  own.take(event('MODIFIED', 'a', '2'))
  answers[0]?.resolve(thing('a', '2'))
  own.take(event('MODIFIED', 'a', '3'))
  answers[1]?.resolve(thing('a', '3'))
  await Promise.all(both)
  expect(passed).toEqual(['MODIFIED a 2 (own)', 'MODIFIED a 3 (own)'])
})

test('says which versions it holds back: those of the event of a write under way, and all later ones', async () => {
  const { own, answers, patch } = setUp()
  const written = patch('a')
  expect(own.holdsBack('9')).toBe(false)
  own.take(event('MODIFIED', 'a', '9'))
  own.take(event('MODIFIED', 'b', '10'))
  expect(['8', '9', '10'].map(own.holdsBack)).toEqual([false, true, true])
  answers[0]?.resolve(thing('a', '9'))
  await written
  expect(own.holdsBack('10')).toBe(false)
})

test('events of other objects, and of one that is not written any more, pass at once', async () => {
  const { own, answers, passed, patch } = setUp()
  const written = patch('a')
  own.take(event('ADDED', 'b', '2'))
  expect(passed).toEqual(['ADDED b 2'])
  answers[0]?.resolve(thing('a', '3'))
  await written
  own.take(event('MODIFIED', 'a', '4'))
  expect(passed).toEqual(['ADDED b 2', 'MODIFIED a 4'])
})
