import { describe, expect, test } from 'vitest'
import { createWorld, EXIT, WITHDRAWAL } from '../testing/world.ts'

describe('an exit and a withdrawal', () => {
  test.each([
    { key: EXIT, request: { kind: 'exit' } },
    { key: WITHDRAWAL, request: { kind: 'withdrawal', amountGwei: 1_000_000_000n } },
  ])('$request.kind: asked for once, and Ready when the consensus layer has accepted it', async ({ key, request }) => {
    const world = createWorld()
    world.addSigner()
    if (key === EXIT) world.addExit()
    else world.addWithdrawal()
    await world.settle(world.start(), [key])
    expect(JSON.stringify(world.condition('Ready', key))).toContain('"True"')
    expect(world.chain.requests()).toMatchObject([{ ...request, pubkey: world.validator() }])
    expect(world.requestStatus(key)).toMatchObject({ phase: 'Accepted', consensus: { status: 'Accepted' } })
  })
})
