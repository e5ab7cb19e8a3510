import { afterAll, expect, test } from 'vitest'
import { findCondition } from '../../../src/resources/conditions.ts'
import type { StakingSigner } from '../../../src/resources/staking-signer.ts'
import { type Commands, pageCommands } from '../../cluster/page-commands.ts'
import { writeKey } from '../../stack/keys.ts'
import {
  applyAll,
  eventually,
  getSigner,
  ownStake,
  PAYER,
  SIGNER,
  seen,
  signer,
  stake,
  untilReady,
  untilReason,
  validatorExit,
} from '../../stack/resources.ts'
import { recordOf } from './harness.ts'
import { byKey, holdBlocks, untilAccepted, untilStalls, useRequestsWorld, whileNothingIsAsked } from './requests-world.ts'

/** An Ethereum signer is handed over to a new key, by the commands of the page. */
const world = useRequestsWorld()
const NEW = 'treasury-2'
const stopping = new AbortController()
let page: Commands | undefined
afterAll(() => {
  stopping.abort()
  page?.stop()
})

const needed = (value: StakingSigner | undefined) => findCondition(value?.status?.conditions, 'KeyNeeded')
const untilNeeded = (name: string, reason: string) =>
  eventually(
    `signer ${name} shows ${reason}`,
    () => getSigner(world().cluster, name),
    (value) => needed(value)?.reason === reason,
  )

test('what is in flight ends under the old key, the new one pays what is new, and the old one stays for its validators', async () => {
  const { cluster, anvil, stack } = world()
  const [old, fresh] = [anvil.accounts[0], anvil.accounts[2]]
  if (old === undefined || fresh === undefined) throw new Error('anvil has too few accounts')
  page = await pageCommands(
    cluster,
    { page: 'docs/how-to/rotate-keys.md', placeholders: { 'OLD-SIGNER': SIGNER, 'NEW-SIGNER': NEW } },
    stopping.signal,
  )
  await applyAll(cluster, [signer()])
  await eventually(
    'the signer is ready',
    () => getSigner(cluster),
    (value) => seen(value).ready === 'True',
  )

  // A deposit of the old key is in the pool when the new signer comes, and another one waits behind it.
  const release = await holdBlocks(world())
  await applyAll(cluster, [ownStake('in-flight-1'), ownStake('in-flight-2')])
  await eventually(
    'both are in the pool',
    () => anvil.transactionCount(PAYER, 'pending'),
    (count) => count === 2,
  )
  writeKey(stack.keysDir, NEW, fresh.privateKey)
  await applyAll(cluster, [signer({ address: fresh.address, keyName: NEW }, NEW)])
  await page.run('Make the new signer')
  await applyAll(cluster, [stake('by-the-new-one', { signer: NEW })])
  await untilNeeded(SIGNER, 'KeyInUse')
  expect(await page.run('Let what is in flight end')).toMatch(/Open[\s\S]*may still land/)

  await release()
  for (const name of ['in-flight-1', 'in-flight-2', 'by-the-new-one']) {
    const { depositData } = (await untilReady(cluster, name)).status ?? {}
    const deposits = (await anvil.deposits()).filter(({ pubkey }) => pubkey.toLowerCase() === depositData?.pubkey.toLowerCase())
    const { spec, status } = await recordOf(cluster, name)
    expect(
      deposits.map(({ txHash }) => txHash),
      `the deposits of ${name}`,
    ).toEqual([status?.outcome?.hash])
    expect({ name, from: spec.from.toLowerCase() }).toEqual({
      name,
      from: (name === 'by-the-new-one' ? fresh : old).address.toLowerCase(),
    })
  }
  // One each, and nothing was cancelled or made twice.
  expect(await Promise.all([old, fresh].map(({ address }) => anvil.transactionCount(address, 'latest')))).toEqual([2, 1])

  const controlling = await untilNeeded(SIGNER, 'ControlsStakes')
  expect(needed(controlling)?.message).toContain(`${PAYER} is the withdrawal address of validators`)
  expect(controlling.status?.lanes).toMatchObject([{ open: 0, waiting: 0, validators: 2 }])

  // No key but the old one can ask for the exit of its validators, whoever owns the others.
  const left = world().fresh()
  await whileNothingIsAsked(world(), async () => {
    await applyAll(cluster, [validatorExit('by-the-new-key', byKey(left), { signer: NEW })])
    await untilStalls(world(), 'validatorexits', 'by-the-new-key', 'SignerNotWithdrawalAddress', /can never be changed/)
  })
  // Kept for that alone, it pays nothing more.
  await page.run('Keep it for the validators that it controls')
  await applyAll(cluster, [validatorExit('by-the-old-key', byKey(left)), stake('too-late')])
  await untilReason(cluster, 'too-late', 'OverLimit')
  await untilAccepted(world(), 'validatorexits', 'by-the-old-key')
  await cluster.kubectlOk(['delete', 'ethereumstake', 'too-late', '--timeout=90s'])

  // Whoever deletes it all the same is told, and it stays.
  await cluster.kubectlOk(['delete', 'signer', SIGNER, '--wait=false'])
  const held = await eventually(
    'the deleted signer says why it stays',
    () => getSigner(cluster),
    (value) => seen(value).reason === 'Deleting' && seen(value).message.includes('withdrawal address'),
  )
  expect(seen(held).message).toMatch(
    /can never be changed.*keep this key.*kubectl annotate signer treasury staking\.dev\/confirm-delete=treasury/,
  )
  await cluster.kubectlOk(['annotate', 'signer', SIGNER, `staking.dev/confirm-delete=${SIGNER}`])
  await cluster.kubectlOk(['wait', '--for=delete', `signer/${SIGNER}`, '--timeout=90s'])

  // The new one has paid for a validator whose withdrawal address is another's: nobody needs it once its deposit is final.
  const next = await pageCommands(cluster, { page: 'docs/how-to/rotate-keys.md', placeholders: { 'OLD-SIGNER': NEW } }, stopping.signal)
  try {
    await cluster.kubectlOk(['delete', 'validatorexit', 'by-the-new-key', '--timeout=90s'])
    await next.run('Let the old key go')
  } finally {
    next.stop()
  }
  expect((await cluster.kubectl(['get', 'signer', NEW])).code).not.toBe(0)
})
