import { describe, expect, test } from 'vitest'
import { KubeError, KubeTransportError } from '../operator/kube/errors.ts'
import type { ResourceDefinition } from '../operator/kube/resource-client.ts'
import { type Plan, withHash } from '../resources/plan.ts'
import { type StakingApproval, stakingApprovalSpec } from '../resources/staking-approval.ts'
import { type Approvable, approve, approverGroups, limitsInWords, readApprovable } from './approve.ts'
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
  const given = { plan, requestedBy: people, signers: { limits: [], asks: [] }, user, groups: ['approvers'] } as unknown as Approvable
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

describe('what nobody is recorded to have asked for', () => {
  const plan: Plan = {
    resource: { kind: 'EthereumStake', namespace: 'team-a', name: 'stake-1', uid: 'u' },
    purpose: 'Deposit',
    network: 'hoodi',
    chainId: 560048,
    signer: 'treasury',
    from: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    subject: '0xab',
    amount: '32000000000',
  }
  /** Approves it as bob, where Ready has this reason, and the signer this policy. */
  async function tried(reason: string, approval?: object): Promise<readonly StakingApproval[]> {
    const made: StakingApproval[] = []
    const conditions = [{ type: 'Ready', status: 'False', reason, message: '', lastTransitionTime: '2030-01-01T00:00:00Z' }]
    const signer = { metadata: { name: 'treasury' }, spec: { chain: 'Ethereum', policy: { approval } } }
    const get = async ({ kind }: ResourceDefinition) =>
      kind === 'StakingSigner'
        ? approval === undefined
          ? 'forbidden'
          : signer
        : { kind: 'EthereumStake', metadata: plan.resource, status: { plan: withHash(plan), conditions } }
    const api = {
      call: async () => ({ status: { userInfo: { username: 'bob', groups: ['approvers'] } } }),
      resource: () => ({
        create: async (object: StakingApproval) => {
          made.push(object)
          return object
        },
      }),
    }
    const cluster = { get, api } as unknown as Cluster
    await approve(cluster, await readApprovable(cluster, 'ethstake/stake-1', 'team-a', never), undefined, never)
    return made
  }
  const by = [{ group: 'approvers' }]

  // Also before the operator waits for it: a raised cap is approved while the transaction goes on within the old one.
  test.each(['ApprovalRequired', 'FeeTooHigh', 'Planned'])(
    'is approved where the policy lets that go, also while Ready is %s',
    async (reason) => {
      for (const policy of [{ by, allowUnrecorded: true }, undefined]) {
        const [made] = await tried(reason, policy)
        expect(stakingApprovalSpec.safeParse(made?.spec)).toMatchObject({ success: true })
        expect(made?.spec.requestedBy).toEqual([])
      }
    },
  )

  test.each(['ApprovalRequired', 'FeeTooHigh', 'Planned'])(
    'is not approved where the policy does not, whatever Ready says: %s',
    async (reason) => {
      await expect(tried(reason, { by })).rejects.toThrow(
        /^who has asked for it is not recorded .* no approval would count, as StakingSigner treasury takes none of that \(spec\.policy\.approval\.allowUnrecorded\)$/,
      )
    },
  )

  test('is not approved where the policy cannot be read, and the operator says that none would count', async () => {
    await expect(tried('ApprovalUnproven')).rejects.toThrow(
      /^nobody can prove who has asked for it: no approval would count, as the message of its condition Ready says$/,
    )
  })
})

describe('what the limits leave', () => {
  const plan: Plan = {
    resource: { kind: 'EthereumStake', namespace: 'team-a', name: 'stake-1', uid: 'u' },
    purpose: 'Deposit',
    network: 'hoodi',
    chainId: 560048,
    signer: 'treasury',
    from: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    subject: '0xab',
    amount: '32000000000',
  }
  /** A cluster with the resource, and this to say of its signer. */
  async function seen(signer: object | 'forbidden' | 'absent') {
    const stake = { kind: 'EthereumStake', metadata: plan.resource, status: { plan: withHash(plan) } }
    const get = async ({ kind }: ResourceDefinition) => (kind === 'StakingSigner' ? signer : stake)
    const api = { call: async () => ({ status: { userInfo: { username: 'bob', groups: ['approvers'] } } }) }
    const { signers } = await readApprovable({ get, api } as unknown as Cluster, 'ethstake/stake-1', 'team-a', never)
    return { ...signers, words: limitsInWords(signers.limits) }
  }

  test.each([
    ['forbidden', 'you may not read StakingSigner treasury (a ClusterRole with get on stakingsigners)'],
    ['absent', 'there is no StakingSigner treasury'],
  ] as const)('is not known where the signer is %s, and that is said', async (signer, why) => {
    expect(await seen(signer)).toMatchObject({ words: [['limits', `not known: ${why}`]], asks: undefined })
  })

  test('is shown of this network and namespace, with whose approval is asked for', async () => {
    const of = (network: string, namespace?: string) => ({ network, window: '24h', per: 'Signer', namespace, count: 1, countLeft: 3 })
    const found = await seen({
      spec: { policy: { approval: { by: [{ group: 'approvers' }, { user: 'carol' }] } } },
      status: { limits: [of('hoodi'), of('mainnet'), of('hoodi', 'team-b')] },
    })
    expect(found).toMatchObject({ words: [['limit', '24h: 3 transactions left']], asks: ['approvers'] })
  })
})

describe('the groups that an approval names', () => {
  const many = Array.from({ length: 300 }, (_, n) => `group-${n}`)
  test('are each once, without those that it has no room for', () => {
    expect(approverGroups(['a', 'b', 'a', 'x'.repeat(257), '', 'two\nlines'], undefined)).toEqual(['a', 'b'])
    expect(approverGroups([...many.slice(0, 256), ...many.slice(0, 256)], undefined)).toHaveLength(256)
  })
  test('of more than fit are those first that count', () => {
    const named = approverGroups(many, ['group-299', 'others'])
    expect(named).toHaveLength(256)
    expect(named).toEqual(['group-299', ...many.slice(0, 255)])
  })
  test('of more than fit, where nobody knows which ones count: it says what to do', () => {
    expect(() => approverGroups(many, undefined)).toThrow(
      /you are in 300 groups, .* at most 256\. .*ask for a ClusterRole with get on stakingsigners/,
    )
  })
})

const deposit: Plan = {
  resource: { kind: 'EthereumStake', namespace: 'team-a', name: 'stake-1', uid: 'u' },
  purpose: 'Deposit',
  network: 'hoodi',
  chainId: 560048,
  signer: 'treasury',
  from: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  subject: '0xab',
  amount: '32000000000',
}
/** What there is of the resource that asks for it. */
const waiting = { kind: 'EthereumStake', metadata: deposit.resource, status: { plan: withHash(deposit) } }

describe('an API server that', () => {
  /** Approves a stake that alice has asked for, as bob. */
  const approvedAt = (api: object, signal = never) => {
    const given = { plan: withHash(deposit), requestedBy: ['alice'], signers: { limits: [], asks: [] }, user: 'bob', groups: [] }
    return approve({ api } as unknown as Cluster, given as unknown as Approvable, undefined, signal)
  }
  const creating = (error: Error, made: string[] = []) => ({
    resource: () => ({
      create: async ({ metadata }: { readonly metadata: { readonly name: string } }) => {
        made.push(metadata.name)
        throw error
      },
    }),
  })

  test.each([
    ['gives no answer in time', new KubeTransportError('TIMEOUT', 'the API server gave no answer within 30000 ms')],
    ['gives up itself', new KubeError(504, 'Timeout', 'create stakingapprovals: request did not complete')],
    ['fails', new KubeError(500, 'InternalError', 'create stakingapprovals: etcdserver: request timed out')],
    ['answers with something else', new KubeError(200, 'NotJson', 'create stakingapprovals: the answer is not JSON')],
  ])('%s may have approved it: that is said, with the command that answers it', async (_what, error) => {
    const made: string[] = []
    const thrown = await approvedAt(creating(error, made)).catch((one: unknown) => one)
    expect(String(thrown)).toBe(
      `InspectError: it is not known whether it was approved: ${error.message}. This answers it: kubectl get stakingapproval ${made[0]} -n team-a`,
    )
  })

  test('refuses is quoted', async () => {
    const denied = new KubeError(403, 'Forbidden', 'create stakingapprovals: bob may not approve it')
    await expect(approvedAt(creating(denied))).rejects.toThrow(
      /^the API server refuses the approval: create stakingapprovals: bob may not approve it$/,
    )
  })

  test('is not waited for any longer leaves the word to whoever has ended it', async () => {
    const ended = new Error('SIGINT received')
    await expect(approvedAt(creating(ended), AbortSignal.abort(ended))).rejects.toBe(ended)
  })

  test('cannot be reached says nothing of who asks: one line, without a stack', async () => {
    const api = { call: () => Promise.reject(new KubeTransportError('ECONNRESET', "the API server can't be reached: read ECONNRESET")) }
    const cluster = { get: async () => waiting, api } as unknown as Cluster
    const thrown = await readApprovable(cluster, 'ethstake/stake-1', 'team-a', never).catch((one: unknown) => one)
    expect(String(thrown)).toBe("InspectError: the API server does not say who you are: the API server can't be reached: read ECONNRESET")
  })
})

describe('what could not count', () => {
  const policy = (approval?: object, name = 'treasury') => ({
    metadata: { name },
    spec: { chain: 'Ethereum', policy: approval === undefined ? {} : { approval } },
  })
  const solana: Plan = { ...deposit, purpose: 'SolanaWithdrawal', withdrawSigner: 'owner' }
  /** Approves it as bob of the approvers, where these are the signers' policies. @returns what was made */
  async function tried(
    signers: Readonly<Record<string, object>>,
    {
      plan = deposit,
      user = 'bob',
      requestedBy = 'alice',
    }: { readonly plan?: Plan; readonly user?: string; readonly requestedBy?: string } = {},
  ): Promise<readonly StakingApproval[]> {
    const made: StakingApproval[] = []
    const metadata = { ...plan.resource, annotations: { 'staking.dev/requested-by': requestedBy } }
    const get = async ({ kind }: ResourceDefinition, { name }: { readonly name: string }) =>
      kind === 'StakingSigner' ? (signers[name] ?? 'forbidden') : { ...waiting, metadata, status: { plan: withHash(plan) } }
    const api = {
      call: async () => ({ status: { userInfo: { username: user, groups: ['approvers'] } } }),
      resource: () => ({
        create: async (object: StakingApproval) => {
          made.push(object)
          return object
        },
      }),
    }
    const cluster = { get, api } as unknown as Cluster
    await approve(cluster, await readApprovable(cluster, 'ethstake/stake-1', 'team-a', never), undefined, never)
    return made
  }

  test.each<[string, object]>([
    ['the user', { by: [{ user: 'bob' }] }],
    ['a group of theirs', { by: [{ user: 'carol' }, { group: 'approvers' }] }],
    // Of another version, say.
    ['whom this version cannot read', { by: [{ team: 'approvers' }] }],
  ])('is not what a policy asks of %s', async (_what, approval) => {
    expect(await tried({ treasury: policy(approval) })).toHaveLength(1)
  })

  test('is what a policy asks of others: it is not made, and whose approval it takes is said', async () => {
    const by = [{ user: 'carol' }, { group: 'owners' }]
    await expect(tried({ treasury: policy({ by }) })).rejects.toThrow(
      /^the policy names neither you \(bob\) nor a group of yours: StakingSigner treasury asks for the approval of user carol or group owners \(spec\.policy\.approval\)$/,
    )
  })

  test.each<[string, object | undefined]>([
    ['asks for nothing', undefined],
    ['asks for nothing of this purpose', { by: [{ user: 'bob' }], kinds: ['Exit'] }],
    ['asks for nothing of this amount', { by: [{ user: 'bob' }], aboveEth: '32' }],
  ])('is what a policy signs anyway: one that %s', async (_what, approval) => {
    await expect(tried({ treasury: policy(approval) })).rejects.toThrow(
      /^no approval of it is asked for by StakingSigner treasury \(spec\.policy\.approval\)$/,
    )
  })

  test('of two who sign, either may name the user; one that cannot be read may name anybody', async () => {
    const spec = { chain: 'Solana', policy: { approval: { by: [{ user: 'carol' }] } } }
    const [mine, others] = [
      { ...policy(), spec: { ...spec, policy: { approval: { by: [{ user: 'bob' }] } } } },
      { ...policy(), spec },
    ]
    expect(await tried({ treasury: others, owner: mine }, { plan: solana })).toHaveLength(1)
    await expect(tried({ treasury: others, owner: others }, { plan: solana })).rejects.toThrow(/^the policy names neither you/)
    expect(await tried({ treasury: others }, { plan: solana })).toHaveLength(1)
    // Of a hand-over, those who get an authority are asked as well.
    expect(await tried({ treasury: others, owner: others }, { plan: { ...solana, purpose: 'SolanaAuthorization' } })).toHaveLength(1)
  })

  test('is the word of whoever has asked, however they spell their name', async () => {
    const signers = { treasury: policy({ by: [{ group: 'approvers' }] }) }
    for (const user of ['Alice', 'alice ', '\uff41lice', 'alice'])
      await expect(tried(signers, { user })).rejects.toThrow(
        user === 'alice'
          ? /^you \(alice\) have asked for it: somebody else must approve it$/
          : `you (${user}) have asked for it as alice: somebody else must approve it`,
      )
    expect(await tried(signers, { user: 'alicia' })).toHaveLength(1)
  })
})
