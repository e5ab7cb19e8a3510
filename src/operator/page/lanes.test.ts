import { expect, test } from 'vitest'
import type { RecordObject } from '../transactions/store.ts'
import { lanesOf } from './lanes.ts'

test('what waits in a lane is what somebody waits for: of a deposit whose stake was deleted nothing is shown', () => {
  const record = (name: string, state: string): RecordObject =>
    ({
      metadata: { name, creationTimestamp: '2030-01-01T00:00:00Z' },
      spec: { chain: 'Ethereum', network: 'hoodi', owner: { kind: 'EthereumStake', namespace: 'team-a', name } },
      status: { state },
    }) as unknown as RecordObject
  const [lane, ...more] = lanesOf({}, [record('wanted', 'Waiting'), record('gone', 'Unclaimed')])
  expect(more).toEqual([])
  expect(lane?.waiting.map(({ record: { metadata } }) => metadata.name)).toEqual(['wanted'])
  expect(lane?.waitingCount).toBe(1)
})
