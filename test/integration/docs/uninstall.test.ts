import { afterAll, expect, test } from 'vitest'
import { type Commands, pageCommands } from '../../cluster/page-commands.ts'
import { applyAll, eventually, getSigner, getStake, SIGNER, seen, signer, stake, untilReason } from '../../stack/resources.ts'
import { matrix } from '../chart/harness.ts'
import { patchSigner, untilPaidOnce, useStack } from '../operator/harness.ts'

/** docs/how-to/uninstall.md, with its commands as they stand, from a cluster with a paid stake to an empty one; the release is installed as the chart's page has it. */
let commands: Commands | undefined
let chartPage: Commands | undefined
const stopping = new AbortController()
const stack = useStack({
  controllerManager: true,
  async install(cluster) {
    chartPage = await pageCommands(cluster, { page: 'charts/staking-operator/README.md' }, stopping.signal)
    chartPage.file('my-values.yaml', JSON.stringify(matrix[0]?.values))
    await chartPage.run('staking-operator')
    return { namespace: 'staking-system', name: 'staking-operator' }
  },
})
afterAll(() => {
  stopping.abort()
  commands?.stop()
  chartPage?.stop()
})

test('the commands of the page, in their order, take everything away but the money', { timeout: 400_000 }, async () => {
  const { cluster, operator } = stack()
  commands = await pageCommands(
    cluster,
    { page: 'docs/how-to/uninstall.md', placeholders: { NAME: 'paid', NAMESPACE: 'default' } },
    stopping.signal,
  )
  await applyAll(cluster, [signer()])
  await eventually(
    'the signer is ready',
    () => getSigner(cluster),
    (value) => seen(value).ready === 'True',
  )
  await applyAll(cluster, [stake('paid'), stake('refused', { amountEth: '65' })])
  await untilPaidOnce(stack(), 'paid')
  await untilReason(cluster, 'refused', 'OverLimit')
  const left = async (kind: string) =>
    (await cluster.kubectlOk(['get', kind, '-A', '-o', 'name'])).split('\n').filter((name) => name !== '')

  await commands.run('Keep a copy')
  await commands.run('Stop what is new')
  expect((await getStake(cluster, 'paid'))?.spec.suspend).toBe(true)
  expect(await commands.run('Wait for what was sent')).toMatch(/Landed/)
  expect(await commands.run('See what holds money')).toMatch(/paid/)

  await commands.run('Delete the resources')
  await eventually(
    'what holds no money is gone',
    () => left('ethereumstakes'),
    (names) => names.length === 1,
  )
  await eventually(
    'what holds money says so',
    () => getStake(cluster, 'paid'),
    (value) => /32 ETH are staked/.test(seen(value).message),
  )
  await commands.run('Forget what stays staked')
  expect(await left('ethereumstakes')).toEqual([])

  // A limit counts what was signed for a day, and so holds its record.
  await patchSigner(cluster, SIGNER, { policy: { limits: [{ window: '24h', maxCount: 100 }] } })
  await commands.run('Delete the log and the signers')
  for (const kind of ['stakingtransactions', 'stakingsigners', 'signernonces']) expect(await left(kind), kind).toEqual([])
  await operator.stop()
  await commands.run('Uninstall the release')
  expect((await left('crd')).filter((name) => name.endsWith('.staking.dev'))).toHaveLength(9)
  // The policy stays with what it protects.
  const refused = await cluster.kubectl(['delete', 'crd', 'ethereumstakes.staking.dev'])
  expect(refused.stderr).toMatch(/every resource of it is deleted/)

  await commands.run('Remove the definitions')
  expect((await left('crd')).filter((name) => name.endsWith('.staking.dev'))).toEqual([])
  for (const kind of ['validatingadmissionpolicies', 'mutatingadmissionpolicies'])
    expect(
      (await left(kind)).filter((name) => name.includes('staking')),
      kind,
    ).toEqual([])
  expect(await stack().anvil.depositCount()).toBe(1)
})
