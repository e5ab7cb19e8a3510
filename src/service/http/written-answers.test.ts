import { beforeEach, describe, expect, test } from 'vitest'
import { createWrittenAnswers, atHandMs as lease, type WrittenAnswers } from './written-answers.ts'

/** A resource of `acme` in a database that counts what it is asked. */
let version: string | undefined
let nowMs: number
let shown: string
let due: boolean
let refreshed: string | undefined
let asked: string[]
let away: boolean
/** While set, questions about versions wait for it. */
let gate: Promise<void> | undefined
let answers: WrittenAnswers
let alone: WrittenAnswers

const atHandMs = lease.shared
const ids = ['one', 'two', 'three']
const never = () => new AbortController().signal
const atHand = (account = 'acme') => answers.atHand(account, 'one')?.written.body
const get = async (id = 'one', account = 'acme') => (await answers.get(account, id, never))?.body
/** What was begun without being waited for. */
const settled = () => new Promise<void>((done) => setImmediate(done))

beforeEach(() => {
  version = 'v1'
  nowMs = 1_000
  shown = 'quiet'
  due = false
  refreshed = undefined
  asked = []
  away = false
  gate = undefined
  const create = (isShared: boolean) =>
    createWrittenAnswers<{ id: string; state: string }, { network: string }, string>({
      isShared,
      clock: { now: () => new Date(nowMs), monotonicMs: () => nowMs, sleep: async () => undefined },
      versions: async (given) => {
        asked.push(`versions ${given.join(' ')}`)
        if (away) throw new Error('away')
        const found = version
        await gate
        return new Map(found === undefined ? [] : given.map((id) => [id, found]))
      },
      read: async (account, id) => {
        asked.push(`read ${id}`)
        const read = version
        await gate
        return read === undefined || account !== 'acme' || !ids.includes(id) ? undefined : { row: { id, state: read }, version: read }
      },
      keyOf: () => ({ network: 'devnet' }),
      beside: {
        known: () => shown,
        isDue: () => due,
        refresh: async () => {
          shown = refreshed ?? shown
        },
        isSame: (one, other) => one === other,
      },
      write: ({ id, state }, beside) => ({ status: 200, body: `${id} ${state} ${beside}` }),
      max: 2,
    })
  answers = create(true)
  alone = create(false)
})

describe('an answer at hand', () => {
  test('is there once it was asked for, for as long as no changer has been answered', async () => {
    expect(atHand()).toBeUndefined()
    expect(await get()).toBe('one v1 quiet')
    nowMs += atHandMs
    expect(atHand()).toBe('one v1 quiet')
    gate = new Promise(() => undefined)
    nowMs += 1
    expect(atHand()).toBeUndefined()
  })

  test('is counted from when the question was asked, not from when it was answered', async () => {
    await get()
    const opened = Promise.withResolvers<void>()
    gate = opened.promise
    nowMs += 20
    const asking = get()
    await settled()
    nowMs += atHandMs + 1
    opened.resolve()
    gate = new Promise(() => undefined)
    expect(await asking).toBe('one v1 quiet')
    expect(atHand()).toBeUndefined()
  })

  test('is looked after before its time is over while it is asked for, once at a time', async () => {
    await get()
    nowMs += atHandMs - 1
    expect(atHand()).toBe('one v1 quiet')
    expect(atHand()).toBe('one v1 quiet')
    await settled()
    expect(asked).toEqual(['read one', 'versions one'])
    nowMs += atHandMs - 1
    expect(atHand()).toBe('one v1 quiet')
  })

  test.each<{ what: string; change: () => void }>([
    {
      what: 'the resource was seen to have changed',
      change: () => {
        version = 'v2'
      },
    },
    {
      what: 'the resource was seen to be gone',
      change: () => {
        version = undefined
      },
    },
    {
      what: 'the database is away',
      change: () => {
        away = true
      },
    },
    {
      what: 'what it shows besides is due to be asked for',
      change: () => {
        due = true
      },
    },
    {
      what: 'what it shows besides is another',
      change: () => {
        shown = 'loud'
      },
    },
  ])('is none when $what', async ({ change }) => {
    await get()
    change()
    nowMs += atHandMs - 1
    atHand()
    await settled()
    nowMs += 2
    expect(atHand()).toBeUndefined()
  })

  test('is none for another account', async () => {
    await get()
    expect(atHand('other')).toBeUndefined()
    expect(await get('one', 'other')).toBeUndefined()
    expect(atHand()).toBe('one v1 quiet')
  })
})

describe('an answer that is asked for', () => {
  test('is never older than its question', async () => {
    await get()
    version = 'v2'
    expect(await get()).toBe('one v2 quiet')
    version = undefined
    expect(await get()).toBeUndefined()
  })

  test('is written once for each state', async () => {
    for (let time = 0; time < 3; time++) await get()
    expect(asked).toEqual(['read one', 'versions one', 'versions one'])
  })

  test('is written again when it shows something else besides', async () => {
    await get()
    refreshed = 'loud'
    expect(await get()).toBe('one v1 loud')
  })

  test('shares its question with others that come at the same time', async () => {
    await get('one')
    await get('two')
    asked = []
    expect(await Promise.all([get('one'), get('two'), get('one')])).toEqual(['one v1 quiet', 'two v1 quiet', 'one v1 quiet'])
    expect(asked).toEqual(['versions one two'])
  })

  test('fails when the database is away, whatever is kept', async () => {
    await get()
    away = true
    await expect(get()).rejects.toThrow('away')
  })
})

describe('an answer of a resource that was changed', () => {
  test('is not at hand, though nothing has asked for its version', async () => {
    await get()
    answers.forget('one')
    expect(atHand()).toBeUndefined()
  })

  test('is not kept when it was read before', async () => {
    const opened = Promise.withResolvers<void>()
    gate = opened.promise
    const asking = get()
    await settled()
    version = 'v2'
    answers.forget('one')
    opened.resolve()
    expect(await asking).toBe('one v1 quiet')
    expect(atHand()).toBeUndefined()
  })

  test('is what its changer waits for until every other instance has asked again, if there may be any', () => {
    expect(answers.settledMs).toBeGreaterThan(lease.shared)
    expect(alone.settledMs).toBe(0)
  })

  test('is at hand for longer where nobody else can change it', async () => {
    await alone.get('acme', 'one', never)
    nowMs += lease.alone
    expect(alone.atHand('acme', 'one')?.written.body).toBe('one v1 quiet')
    gate = new Promise(() => undefined)
    nowMs += 1
    expect(alone.atHand('acme', 'one')).toBeUndefined()
  })
})

test('no more is kept than may be: the one that was written first goes', async () => {
  for (const id of ids) await get(id)
  expect(atHand()).toBeUndefined()
  expect(answers.atHand('acme', 'three')?.written.body).toBe('three v1 quiet')
})
