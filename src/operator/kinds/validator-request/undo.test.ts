import { describe, expect, test } from 'vitest'
import { StakingApiError } from '../../../contract/client-error.ts'
import { gwei } from '../../../lib/amounts.ts'
import { CONFIRM_DELETE_ANNOTATION, ORIGIN_ANNOTATION } from '../../../resources/meta.ts'
import { assertNothingMoved, message, unsent, visited } from '../../testing/request-stories.ts'
import { createWorld, EXIT, WITHDRAWAL, type World } from '../../testing/world.ts'

describe('deleted', () => {
  test('before it is sent: the exit is cancelled at the staking API, and the resource goes', async () => {
    const world = await unsent(EXIT)
    world.remove(EXIT)
    await world.settle(world.start(), [EXIT], 2)
    expect(world.object(EXIT)).toBeUndefined()
    expect(await world.requests.requests()).toMatchObject([{ status: 'cancelled' }])
  })
  test('while the staking API is away: it waits, and goes when that is back', async () => {
    const world = await unsent(EXIT)
    world.remove(EXIT)
    const down = world.start((point) => {
      if (point.includes('requests.')) throw new StakingApiError('down', { kind: 'network', outcomeUnknown: true })
    })
    await world.visit(down, EXIT)
    expect(world.condition('Ready', EXIT)).toMatchObject({ reason: 'Deleting' })
    await world.visit(world.start(), EXIT)
    expect(world.object(EXIT)).toBeUndefined()
  })
  test('before it is sent, but the chain shows the same asked for by others: a person looks first', async () => {
    const world = await unsent(EXIT, (before) => {
      before.requests.state.sentUnreported = true
    })
    world.remove(EXIT)
    await world.visit(world.start(), EXIT)
    expect(world.object(EXIT)).toBeDefined()
    expect(world.stalled(EXIT)).toBe('UnknownSubmission')
    assertNothingMoved(world)
    world.requests.state.sentUnreported = false
    await world.settle(world.start(), [EXIT])
    expect(world.object(EXIT)).toBeUndefined()
  })
  test('before it is sent: the withdrawal is cancelled at the staking API, so that its amount is free, and the resource goes', async () => {
    const world = await unsent(WITHDRAWAL)
    world.remove(WITHDRAWAL)
    await world.settle(world.start(), [WITHDRAWAL], 2)
    expect(world.object(WITHDRAWAL)).toBeUndefined()
    expect(await world.requests.requests()).toMatchObject([{ status: 'cancelled' }])
    assertNothingMoved(world)
  })
  test('before it is sent, and made again for another amount: what was meant is said, and how it goes on', async () => {
    const world = await unsent(WITHDRAWAL)
    const name = world.record(WITHDRAWAL)?.metadata.name
    world.remove(WITHDRAWAL)
    await world.settle(world.start(), [WITHDRAWAL], 2)
    world.chain.state.requestFee = 1n
    world.addWithdrawal(WITHDRAWAL, { amountGwei: '7' })
    await world.settle(world.start(), [WITHDRAWAL], 3)
    expect(world.stalled(WITHDRAWAL)).toBe('AlreadyRequested')
    expect(message(world, WITHDRAWAL)).toContain(`kubectl delete stx ${name}`)
    assertNothingMoved(world)
    world.records.remove(name ?? '')
    await world.settle(world.start(), [WITHDRAWAL])
    expect(world.ready(WITHDRAWAL), message(world, WITHDRAWAL)).toBe(true)
    expect(world.chain.requests()).toMatchObject([{ amountGwei: 7n }])
  })
  test.each([
    { what: 'knows no cancelling of withdrawals (404)', status: 404 },
    { what: 'knows no cancelling of withdrawals (405)', status: 405 },
    { what: 'sees the same asked for by others', status: undefined },
  ])('before it is sent: a withdrawal goes also where the staking API $what', async ({ status }) => {
    const world = await unsent(WITHDRAWAL, (before) => {
      before.requests.state.cancelsNoWithdrawals = status
      before.requests.state.sentUnreported = status === undefined
    })
    world.remove(WITHDRAWAL)
    await world.settle(world.start(), [WITHDRAWAL], 2)
    expect(world.object(WITHDRAWAL)).toBeUndefined()
    assertNothingMoved(world)
  })
  test('after it was sent: it stays until the consensus layer has decided, signs nothing more, and goes', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit()
    const operator = world.start()
    await world.visit(operator, EXIT)
    world.requests.state.consensus = () => ({ status: 'pending' })
    world.remove(EXIT)
    world.keys.signed.length = 0
    await world.visit(operator, EXIT)
    expect(world.stalled(EXIT)).toBe('')
    await world.settle(operator, [EXIT], 6)
    expect(world.object(EXIT)).toBeDefined()
    expect(message(world, EXIT)).toContain("can't be taken back")
    world.requests.state.consensus = () => ({ status: 'accepted' })
    await world.settle(operator, [EXIT], 2)
    expect(world.object(EXIT)).toBeUndefined()
    expect(world.keys.signed).toEqual([])
    expect(world.requests.calls.some(({ method }) => method === 'cancelExitRequest')).toBe(false)
  })
  test.each([
    { at: 'an API that lists them', listsNothing: false, status: 'cancelled' },
    { at: 'an API that lists nothing', listsNothing: true, status: 'awaiting_submission' },
  ])('of which neither status nor the log tells any more: at $at it is $status, and nothing is made', async ({ listsNothing, status }) => {
    const world = await unsent(WITHDRAWAL, (before) => {
      before.requests.state.listsNothing = listsNothing
    })
    world.loseLog()
    world.editRequest(WITHDRAWAL, ({ status: _status, ...rest }) => rest)
    world.requests.calls.length = 0
    world.remove(WITHDRAWAL)
    await world.settle(world.start(), [WITHDRAWAL], 2)
    expect(world.object(WITHDRAWAL)).toBeUndefined()
    expect(await world.requests.requests()).toMatchObject([{ status }])
    expect(world.requests.calls.filter(({ method }) => method.startsWith('create'))).toEqual([])
    assertNothingMoved(world)
  })
  test('with a request in status that is another’s: its own is found by its name and cancelled, and the other is left alone', async () => {
    const world = await unsent(WITHDRAWAL)
    const others = await world.requests.api.createWithdrawalRequest(
      { idempotencyKey: 'other', pubkey: world.validator(), amountGwei: gwei(5n), externalReference: 'ValidatorWithdrawal/team-b/other' },
      new AbortController().signal,
    )
    world.editRequest(WITHDRAWAL, (request) => ({ ...request, status: { ...request.status, requestId: others.requestId } }))
    world.remove(WITHDRAWAL)
    await world.settle(world.start(), [WITHDRAWAL], 2)
    expect(world.object(WITHDRAWAL)).toBeUndefined()
    expect((await world.requests.requests()).map(({ status }) => status)).toEqual(['cancelled', 'awaiting_submission'])
  })
  test.each([
    { never: 'whose stake is not there', spec: { validator: { stakeRef: { name: 'none' } } } },
    { never: 'of a key that is none', spec: { validator: { network: 'hoodi', pubkey: `0x${'11'.repeat(48)}` } } },
    { never: 'on a network that is not configured', spec: { validator: { network: 'other', pubkey: `0x${'11'.repeat(48)}` } } },
  ])('before anything could be asked for, $never: it goes at once, whatever the staking API does', async ({ spec }) => {
    const world = await visited(
      EXIT,
      (before) => {
        Object.assign(before.requests.api, {
          exitRequestsNamed: async () => {
            throw new StakingApiError('away', { kind: 'network', outcomeUnknown: false })
          },
        })
      },
      spec,
    )
    world.remove(EXIT)
    await world.visit(world.start(), EXIT)
    expect(world.object(EXIT)).toBeUndefined()
    expect(world.requests.calls).toEqual([])
  })
  test('of which only the log tells that it was made: it is cancelled all the same', async () => {
    const world = createWorld()
    world.addSigner()
    world.addWithdrawal()
    const ending = world.start((point, self) => {
      if (point.startsWith('before signernonces.create')) self.kill()
    })
    await world.settle(ending, [WITHDRAWAL], 2)
    expect(world.records.list()).toMatchObject([{ spec: { apiId: expect.any(String) } }])
    world.editRequest(WITHDRAWAL, ({ status: _status, ...rest }) => rest)
    world.remove(WITHDRAWAL)
    await world.settle(world.start(), [WITHDRAWAL], 2)
    expect(world.object(WITHDRAWAL)).toBeUndefined()
    expect(await world.requests.requests()).toMatchObject([{ status: 'cancelled' }])
    assertNothingMoved(world)
  })
})

describe('deleted, and confirmed by annotation', () => {
  const confirm = (world: World, key: string) =>
    world.editRequest(key, (request) => ({
      ...request,
      metadata: {
        ...request.metadata,
        annotations: { ...(request.metadata as { annotations?: object }).annotations, [CONFIRM_DELETE_ANNOTATION]: key.split('/')[1] },
      },
    }))
  const notes = (world: World) => world.events.map(({ text }) => `${text.type} ${text.note}`).join('\n')

  test('it goes at once, though it was sent', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit()
    const operator = world.start()
    await world.visit(operator, EXIT)
    confirm(world, EXIT)
    world.remove(EXIT)
    await world.visit(operator, EXIT)
    expect(world.object(EXIT)).toBeUndefined()
    expect(world.requests.calls.some(({ method }) => method === 'cancelExitRequest')).toBe(false)
  })
  test.each([EXIT, WITHDRAWAL])('not sent yet, %s is cancelled at the staking API in the visit that lets it go', async (key) => {
    const world = await unsent(key)
    confirm(world, key)
    world.remove(key)
    await world.visit(world.start(), key)
    expect(world.object(key)).toBeUndefined()
    expect(await world.requests.requests()).toMatchObject([{ status: 'cancelled' }])
    expect(notes(world)).toContain('Normal The finalizer is removed: its deletion was confirmed by annotation.')
    assertNothingMoved(world)
  })
  test('while the staking API is away for a moment, it waits for that, and says so', async () => {
    const world = await unsent(WITHDRAWAL)
    confirm(world, WITHDRAWAL)
    world.remove(WITHDRAWAL)
    world.requests.state.cancelsNoWithdrawals = 503
    const operator = world.start()
    await world.visit(operator, WITHDRAWAL)
    expect(world.object(WITHDRAWAL)).toBeDefined()
    expect(message(world, WITHDRAWAL)).toContain('It goes soon, whatever comes of that')
    expect(message(world, WITHDRAWAL)).not.toContain('kubectl annotate')
    world.requests.state.cancelsNoWithdrawals = undefined
    await world.visit(operator, WITHDRAWAL)
    expect(world.object(WITHDRAWAL)).toBeUndefined()
    expect(await world.requests.requests()).toMatchObject([{ status: 'cancelled' }])
  })
  test('while the staking API stays away, it goes after a minute, and a warning says what is left there', async () => {
    const world = await unsent(WITHDRAWAL)
    confirm(world, WITHDRAWAL)
    world.remove(WITHDRAWAL)
    world.requests.state.cancelsNoWithdrawals = 503
    const operator = world.start()
    await world.visit(operator, WITHDRAWAL)
    world.clock.advance(59_000)
    await world.visit(operator, WITHDRAWAL)
    expect(world.object(WITHDRAWAL)).toBeDefined()
    world.clock.advance(1_000)
    await world.visit(operator, WITHDRAWAL)
    expect(world.object(WITHDRAWAL)).toBeUndefined()
    expect(notes(world)).toContain(
      'Warning The finalizer is removed: its deletion was confirmed by annotation. What it has asked for could not be cancelled at the staking API, and stays there (ServiceUnavailable).',
    )
  })
  test('where a person would have to look first, a person has said that nobody will: it goes at once', async () => {
    const world = await unsent(EXIT)
    world.requests.state.sentUnreported = true
    confirm(world, EXIT)
    world.remove(EXIT)
    await world.visit(world.start(), EXIT)
    expect(world.object(EXIT)).toBeUndefined()
    expect(notes(world)).toContain('(UnknownSubmission)')
    assertNothingMoved(world)
  })
  test.each([true, false])('a copy of one that is not sent goes, and cancels nothing (confirmed: %s)', async (isConfirmed) => {
    const world = await unsent(WITHDRAWAL)
    world.editRequest(WITHDRAWAL, (request) => ({
      ...request,
      metadata: { ...request.metadata, annotations: { [ORIGIN_ANNOTATION]: `${crypto.randomUUID()}/team-b/other` } },
    }))
    if (isConfirmed) confirm(world, WITHDRAWAL)
    world.remove(WITHDRAWAL)
    await world.visit(world.start(), WITHDRAWAL)
    expect(world.object(WITHDRAWAL)).toBeUndefined()
    expect(await world.requests.requests()).toMatchObject([{ status: 'awaiting_submission' }])
  })
})
