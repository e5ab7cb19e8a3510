import { expect, test } from 'vitest'
import { type StakingApproval, stakingApprovalSpec } from '../resources/staking-approval.ts'
import { type Approvable, approve } from './approve.ts'
import type { Cluster } from './cluster.ts'

const never = new AbortController().signal
const people = Array.from({ length: 40 }, (_, n) => `user-${n}`)

/** Approves what so many have asked for, at an API server that takes everything. */
async function approved(user: string): Promise<readonly StakingApproval[]> {
  const made: StakingApproval[] = []
  const create = async (object: StakingApproval) => {
    made.push(object)
    return object
  }
  const plan = { resource: { kind: 'EthereumStake', namespace: 'team-a', name: 'stake-1', uid: 'u' }, hash: 'ab'.repeat(32) }
  const given = { plan, requestedBy: people, limits: [], user, groups: ['approvers'] } as unknown as Approvable
  await approve({ api: { resource: () => ({ create }) } } as unknown as Cluster, given, undefined, never)
  return made
}

test('what more people have asked for than an approval can name is approved all the same', async () => {
  const [made] = await approved('bob')
  expect(stakingApprovalSpec.safeParse(made?.spec)).toMatchObject({ success: true })
  expect(made?.spec.requestedBy).toEqual(people.slice(0, 32))
})

test('and by none of them, named in it or not', async () => {
  for (const user of ['user-0', 'user-39']) await expect(approved(user)).rejects.toThrow(`you (${user}) have asked for it`)
})
