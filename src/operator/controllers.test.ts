import { pino } from 'pino'
import { afterEach, expect, test } from 'vitest'
import { createFakeClock, settle } from '../../test/integration/kube/fake-clock.ts'
import { createControllers } from './controllers.ts'
import type { Result } from './kube/controller.ts'
import type { RecordObject } from './transactions/store.ts'
import { LOG_WORKERS, turnsIn } from './transactions/turns.ts'

const stopping = new AbortController()
afterEach(() => stopping.abort())

test('a signer whose signatures take long keeps nobody else from being looked after, whatever it has waiting', async () => {
  const payers = new Map([['other', 'PayerOfOther']])
  for (let n = 0; n < 40; n++) payers.set(`slow-${n}`, 'PayerOfSlow').set(`slower-${n}`, 'PayerOfSlower')
  const lanes = [560_048, 1].map((chainId) => `${chainId}/0x${'ab'.repeat(20)}`)
  const visited: string[] = []
  const definition = {
    group: 'staking.dev',
    version: 'v1alpha1',
    plural: 'stakingtransactions',
    kind: 'StakingTransaction',
    namespaced: false,
  }
  const controllers = createControllers<'records'>(
    { records: { client: { definition } } },
    {
      clock: createFakeClock(),
      log: pino({ enabled: false }),
      metrics: { queuePicked: () => {}, reconcile: () => {} },
      workers: () => LOG_WORKERS,
      turns: turnsIn({ records: { cache: { get: (name) => ({ spec: { from: payers.get(name) } }) as RecordObject } } }),
    },
  )
  const never = new Promise<Result>(() => {})
  const reconcile = (key: string): Promise<Result> => {
    visited.push(key)
    return key.startsWith('slow') ? never : Promise.resolve({ kind: 'done' })
  }
  void controllers.run({ records: reconcile }, stopping.signal)
  for (const key of payers.keys()) if (key !== 'other') controllers.queues.records.add(key)
  await settle()
  expect(visited.filter((key) => key.startsWith('slow-'))).toHaveLength(4)
  for (const key of ['other', ...lanes]) controllers.queues.records.add(key)
  await settle()
  expect(visited.filter((key) => !key.startsWith('slow')).sort()).toEqual([...lanes, 'other'].sort())
})
