import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { KubeError } from '../../operator/kube/errors.ts'
import { createTestClock } from '../../operator/testing/test-clock.ts'
import { timestamp } from '../../resources/conditions.ts'
import { kinds } from '../../resources/kinds.ts'
import type { Cluster } from '../cluster.ts'
import { painter } from '../output.ts'
import type { ManifestObject } from './manifests.ts'
import { makePlan, type PlanOptions } from './plan.ts'
import type { Plan, PlannedResource } from './planned.ts'
import { judge } from './rules.ts'
import { exitCodeOf } from './summary.ts'
import { inWords } from './words.ts'

const never = new AbortController().signal
const clock = createTestClock()
const plain = painter({}, {})
const PAYER = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const HOME = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const STAKER = 'FtrFpXmPLFS1VNMEqNRdYbWK8Q6KZ1zZmdYV3zFFpCwM'
const VOTE = 'CertusDeBmqN8ZawdkxK5kFGMwBXdudvWHYwtNgNhvLu'

type Json = Readonly<Record<string, unknown>>
const object = (kind: string, name: string, spec: Json, metadata: Json = {}): Json => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind,
  metadata: { name, ...metadata },
  spec,
})
const signer = (policy: Json = {}, spec: Json = {}, name = 'treasury') =>
  object('StakingSigner', name, {
    chain: 'Ethereum',
    keyName: name,
    address: PAYER,
    policy: { allowedNamespaces: { names: ['team-a'] }, maxPerTransaction: '64', ...policy },
    ...spec,
  })
const stake = (name: string, spec: Json = {}, metadata: Json = {}) =>
  object(
    'EthereumStake',
    name,
    { network: 'hoodi', amountEth: '32', withdrawalAddress: HOME, signer: 'treasury', ...spec },
    { namespace: 'team-a', ...metadata },
  )
const exit = (name: string, validator: Json, spec: Json = {}) =>
  object('ValidatorExit', name, { validator, signer: 'treasury', ...spec }, { namespace: 'team-a' })
const solanaSigner = (name: string, policy: Json = {}) =>
  object('StakingSigner', name, {
    chain: 'Solana',
    keyName: name,
    address: STAKER,
    policy: { allowedNamespaces: { names: ['team-a'] }, maxPerTransaction: '100000000000', ...policy },
  })
const solanaStake = (name: string, spec: Json = {}) =>
  object(
    'SolanaStake',
    name,
    {
      network: 'devnet',
      amountLamports: '5000000000',
      stakeAuthority: { signer: 'staker' },
      withdrawAuthority: { signer: 'staker' },
      voteAccount: VOTE,
      ...spec,
    },
    { namespace: 'team-a' },
  )

let dir = ''
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'plan-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const put = (name: string, text: string | Buffer): string => {
  const file = join(dir, name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  return file
}
const planOf = (given: Partial<PlanOptions> = {}): Promise<Plan> =>
  makePlan({ paths: [dir], recursive: false, namespace: undefined, networksFile: undefined, server: undefined, clock, ...given }, never)
const planned = async (objects: readonly Json[], given: Partial<PlanOptions> = {}): Promise<Plan> => {
  put('all.yaml', objects.map((one) => stringify(one)).join('---\n'))
  return planOf(given)
}
const one = (plan: Plan, name: string): PlannedResource => {
  const found = plan.resources.find((resource) => resource.name === name)
  if (found === undefined) throw new Error(`the plan has no ${name}`)
  return found
}
const reasons = ({ refusals }: PlannedResource) => refusals.map(({ reason, message }) => `${reason ?? 'schema'}: ${message}`)

describe('without a cluster', () => {
  test('a stake is told with its addresses, its amount and the policy that admits it', async () => {
    const plan = await planned([signer(), stake('validator-1', { maxFeePerGasGwei: '30' })])
    expect(one(plan, 'validator-1')).toMatchObject({
      action: 'create',
      moves: { is: 'pays', amount: '32 ETH', from: PAYER, signer: 'treasury', returnsTo: HOME, network: 'hoodi' },
      fees: { cap: '30 gwei per gas' },
      policy: [{ signer: 'treasury', says: 'admits' }],
      refusals: [],
    })
    expect(plan.summary).toMatchObject({ create: 2, refused: 0, pays: ['32 ETH on hoodi'] })
    expect(exitCodeOf(plan, { strict: false })).toBe(0)
  })

  test('what is not known is said, and fails a strict plan', async () => {
    const plan = await planned([stake('validator-1')])
    const { action, unknown, policy } = one(plan, 'validator-1')
    expect([action, policy]).toEqual(['create', []])
    expect(unknown.join('\n')).toMatch(/in the cluster already/)
    expect(unknown.join('\n')).toMatch(/StakingSigner treasury admits it: it is not in these manifests, and no cluster was asked/)
    expect(unknown.join('\n')).toMatch(/the operator has network hoodi/)
    expect([exitCodeOf(plan, { strict: false }), exitCodeOf(plan, { strict: true })]).toEqual([0, 2])
  })

  test.each<[string, readonly Json[], RegExp]>([
    [
      'an amount in wei',
      [stake('bad', { amountEth: '32000000000000000000' })],
      /^schema: spec\.amountEth: must be a plain decimal number of ETH/,
    ],
    ['an amount in gwei', [stake('bad', { amountEth: '3200' })], /^schema: spec\.amountEth: must be at most 2048 ETH/],
    [
      'a number for a text',
      [stake('bad', { amountEth: 32 })],
      /^schema: spec\.amountEth: must be of type string, and is integer: write "32"$/,
    ],
    ['too little', [stake('bad', { amountEth: '31.9' })], /must be at least 32 ETH/],
    [
      'more than Execution credentials take',
      [stake('bad', { amountEth: '64', credentialsType: 'Execution' })],
      /must be 32 with credentialsType Execution/,
    ],
    ['the zero address', [stake('bad', { withdrawalAddress: `0x${'0'.repeat(40)}` })], /zero address/],
    [
      'the deposit contract',
      [stake('bad', { withdrawalAddress: '0x00000000219ab540356cBB839Cbe05303d7705Fa' })],
      /never pays anything out/,
    ],
    [
      'a wrong checksum',
      [stake('bad', { withdrawalAddress: HOME.replace('C51', 'c51') })],
      /^InvalidSpec: spec\.withdrawalAddress: .*checksum/,
    ],
    ['a field that is none', [stake('bad', { withdrawalAdress: HOME })], /^schema: spec\.withdrawalAdress: is an unknown field$/],
    ['a field that lacks', [stake('bad', { signer: undefined })], /^schema: spec\.signer: is required$/],
    ['no name', [stake('', {}, { generateName: 'bad' })], /^schema: metadata\.name: is required/],
    ['a name that is none', [stake('Validator_1')], /^schema: metadata\.name: must be a lowercase RFC 1123 subdomain$/],
    ['another version', [{ ...stake('bad'), apiVersion: 'staking.dev/v1' }], /^schema: apiVersion: is staking\.dev\/v1/],
    ['a copy', [stake('bad', {}, { annotations: { 'staking.dev/origin': 'u-1/team-b/other' } })], /^CopiedResource: /],
    ['a namespace that is not admitted', [signer(), stake('bad', {}, { namespace: 'team-b' })], /^NamespaceNotAllowed: /],
    ['an address that is not admitted', [signer({ allowedWithdrawalAddresses: [PAYER] }), stake('bad')], /^WithdrawalAddressNotAllowed: /],
    ['more than one transaction may pay', [signer(), stake('bad', { amountEth: '65' })], /^OverLimit: /],
    ['a signer of another chain', [solanaSigner('treasury'), stake('bad')], /^WrongChain: /],
    [
      'a validator in two ways',
      [exit('bad', { stakeRef: { name: 'a' }, network: 'hoodi', pubkey: `0x${'ab'.repeat(48)}` })],
      /must have either stakeRef/,
    ],
    [
      'a signer that is not the withdrawal address',
      [signer(), stake('a'), exit('bad', { stakeRef: { name: 'a' } })],
      /^SignerNotWithdrawalAddress: /,
    ],
    [
      'a limit in the wrong coin',
      [signer({ limits: [{ window: '24h', maxTotalSol: '5' }] }, {}, 'bad')],
      /limits of an Ethereum signer are in ETH/,
    ],
    ['a window of no unit', [signer({ limits: [{ window: '24', maxCount: 1 }] }, {}, 'bad')], /window: must be a whole number of seconds/],
    [
      'two limits for one window',
      [
        signer(
          {
            limits: [
              { window: '24h', maxCount: 1, per: 'Signer' },
              { window: '24h', maxCount: 2 },
            ],
          },
          {},
          'bad',
        ),
      ],
      /is there twice/,
    ],
    ...(
      [
        ['24h', '1d'],
        ['1h', '60m'],
        ['60s', '1m'],
        ['7d', '604800s'],
      ] as const
    ).map(([window, same]): [string, readonly Json[], RegExp] => [
      `two limits for one window, ${window} and ${same},`,
      [
        signer(
          {
            limits: [
              { window, maxCount: 1 },
              { window: '30d', maxCount: 30 },
              { window: same, maxTotalEth: '32', per: 'Signer' },
            ],
          },
          {},
          'bad',
        ),
      ],
      /^schema: spec\.policy\.limits: has two limits for windows of the same length/,
    ]),
    [
      'an approver under two spellings of one name',
      [signer({ approval: { by: [{ user: 'carol@example.com' }, { user: 'Carol@example.com' }] } }, {}, 'bad')],
      /names somebody twice/,
    ],
    [
      'an approver under two spellings that the rules of the API server do not see',
      [signer({ approval: { by: [{ user: 'carol@example.com' }, { user: 'carol@example.com ' }] } }, {}, 'bad')],
      /^PolicyUnreadable: spec\.policy\.approval\.by names somebody twice/,
    ],
    ['a second signer of one address', [signer(), signer({}, {}, 'zz-second')], /^DuplicateSigner: /],
    ['SOL for lamports', [solanaSigner('staker'), solanaStake('bad', { amountLamports: '5.0' })], /^schema: spec\.amountLamports: /],
    [
      'a vote account that is not admitted',
      [solanaSigner('staker', { allowedVoteAccounts: [] }), solanaStake('bad')],
      /^VoteAccountNotAllowed: /,
    ],
    [
      'a destination that is a program',
      [solanaStake('bad', { destination: '1nc1nerator11111111111111111111111111111111' })],
      /money that goes there is lost/,
    ],
  ])('%s is refused', async (_what, objects, says) => {
    const plan = await planned(objects)
    const bad = plan.resources.filter(({ action }) => action === 'refused')
    expect(bad.flatMap(reasons).join('\n')).toMatch(says)
    expect(bad).toHaveLength(1)
    expect(exitCodeOf(plan, { strict: false })).toBe(2)
  })

  const NEXT = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'
  const nextSigner = { ...solanaSigner('next'), spec: { ...(solanaSigner('next').spec as Json), address: NEXT } }
  const handOver = (spec: Json) =>
    object('SolanaStakeAuthorization', 'hand-over', { stakeRef: { name: 'one' }, ...spec }, { namespace: 'team-a' })

  test('a hand-over is told with whom it goes to, whose policy admits it, and the approvals that it needs', async () => {
    const approval = { kinds: ['SolanaWithdrawal'], by: [{ group: 'treasury' }] }
    const staker = solanaSigner('staker', { allowedSuccessors: [NEXT], approval })
    const plan = await planned([staker, nextSigner, solanaStake('one'), handOver({ withdrawAuthority: { signer: 'next' } })])
    const found = one(plan, 'hand-over')
    expect(found.does.join()).toContain(`to ${NEXT} (StakingSigner next): whoever has it owns the money`)
    expect(found.policy.map(({ signer: of, says }) => [of, says])).toEqual([
      ['staker', 'admits'],
      ['next', 'admits'],
    ])
    expect(found.approvals.join()).toContain('1 approval of group treasury, by StakingSigner staker')
    expect([found.action, found.waits.map(({ reason }) => reason)]).toEqual(['create', ['WaitingForStake', 'ApprovalRequired']])
  })

  test('where deactivations have to be approved, so has a hand-over of the stake authority, and the plan says so', async () => {
    const approval = { kinds: ['SolanaDeactivation'], by: [{ group: 'treasury' }] }
    const staker = solanaSigner('staker', { allowedSuccessors: [NEXT], approval })
    const plan = await planned([staker, nextSigner, solanaStake('one'), handOver({ stakeAuthority: { signer: 'next' } })])
    expect(one(plan, 'hand-over').approvals).toEqual(['1 approval of group treasury, by StakingSigner staker (spec.policy.approval)'])
  })

  test.each<[string, readonly Json[], RegExp]>([
    [
      'no successor',
      [solanaSigner('staker'), nextSigner, solanaStake('one'), handOver({ withdrawAuthority: { signer: 'next' } })],
      /^SuccessorNotAllowed: /,
    ],
    [
      'a successor that does not admit the namespace',
      [
        solanaSigner('staker', { allowedSuccessors: [NEXT] }),
        { ...nextSigner, spec: { ...nextSigner.spec, policy: { allowedNamespaces: {}, maxPerTransaction: '0' } } },
        solanaStake('one'),
        handOver({ stakeAuthority: { signer: 'next' } }),
      ],
      /^NamespaceNotAllowed: /,
    ],
    ['an address that nobody confirms', [handOver({ withdrawAuthority: { address: NEXT } })], /must be true where an address is named/],
    [
      'a text of the right letters that is no address',
      [handOver({ withdrawAuthority: { address: '1'.repeat(44) }, acceptUnproven: true })],
      /^InvalidSpec: .*not base58 of 32 bytes/,
    ],
    ['nobody', [handOver({})], /must have stakeAuthority, withdrawAuthority or both/],
  ])('a hand-over to %s is refused', async (_what, objects, says) => {
    const found = one(await planned(objects), 'hand-over')
    expect(reasons(found).join('\n')).toMatch(says)
    expect(found.action).toBe('refused')
  })

  test('a suspended signer is waited for, and refuses nothing', async () => {
    const plan = await planned([signer({}, { suspend: true }), stake('validator-1')])
    expect(one(plan, 'validator-1')).toMatchObject({ action: 'create', waits: [{ reason: 'SignerSuspended' }] })
    expect(exitCodeOf(plan, { strict: false })).toBe(0)
  })

  test('a namespace that is admitted by its labels is unknown without them, and all else of it is still said', async () => {
    const byLabels = signer({ allowedNamespaces: { selector: { matchLabels: { stakes: 'ours' } } } })
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a', labels: { stakes: 'ours' } } }
    const unknown = await planned([byLabels, stake('validator-1')])
    expect(one(unknown, 'validator-1')).toMatchObject({ action: 'create', policy: [{ says: 'unknown' }] })
    expect(reasons(one(await planned([byLabels, stake('validator-1', { amountEth: '65' })]), 'validator-1')).join()).toMatch(/^OverLimit/)
    expect(one(await planned([byLabels, namespace, stake('validator-1')]), 'validator-1').policy).toMatchObject([{ says: 'admits' }])
    const other = { ...namespace, metadata: { name: 'team-a', labels: {} } }
    expect(reasons(one(await planned([byLabels, other, stake('validator-1')]), 'validator-1')).join()).toMatch(/^NamespaceNotAllowed/)
  })

  test('two that together are over a limit: the first has its room, and the second waits, and so does what comes after it', async () => {
    const limited = signer({ limits: [{ window: '24h', maxTotalEth: '96' }] })
    const plan = await planned([limited, stake('a', { amountEth: '64' }), stake('b', { amountEth: '64' }), stake('c')])
    expect(one(plan, 'a').waits).toEqual([])
    expect(one(plan, 'b').waits.map(({ reason }) => reason)).toEqual(['LimitReached'])
    expect(one(plan, 'c').waits.map(({ reason }) => reason)).toEqual(['LimitReached'])
    expect(exitCodeOf(plan, { strict: false })).toBe(0)
    // Nothing of it moves with the clock.
    expect(JSON.stringify(plan)).not.toMatch(/\d{4}-\d\d-\d\dT/)
  })

  test('approvals that a policy asks for are told, and waited for', async () => {
    const asking = signer({ approval: { aboveEth: '32', by: [{ group: 'approvers' }], count: 2 } })
    const plan = await planned([asking, stake('small'), stake('large', { amountEth: '33' })])
    expect([one(plan, 'small').approvals, one(plan, 'small').waits]).toEqual([[], []])
    expect(one(plan, 'large').approvals).toEqual(['2 approvals of group approvers, by StakingSigner treasury (spec.policy.approval)'])
    expect(one(plan, 'large').waits.map(({ reason }) => reason)).toEqual(['ApprovalRequired'])
    expect(exitCodeOf(plan, { strict: false })).toBe(0)
  })

  test('what is over a limit by itself never goes, and is refused', async () => {
    const plan = await planned([signer({ limits: [{ window: '24h', maxTotalEth: '32' }] }), stake('bad', { amountEth: '64' })])
    expect(reasons(one(plan, 'bad')).join()).toMatch(/^LimitReached: .*more than that by itself/)
    expect(exitCodeOf(plan, { strict: false })).toBe(2)
  })

  test('the same resource twice is refused the second time', async () => {
    const plan = await planned([signer(), stake('a'), stake('a', { amountEth: '33' })])
    expect(plan.resources.map(({ action }) => action)).toEqual(['create', 'create', 'refused'])
    expect(plan.summary.pays).toEqual(['32 ETH on hoodi'])
  })

  test('kinds that are not known, and what only the operator writes, are skipped and said', async () => {
    const plan = await planned([
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
      object('SignerNonce', 'n', { chainId: 1, address: PAYER, nonce: 0 }),
      { apiVersion: 'other.example/v1', kind: 'EthereumStake', metadata: { name: 'foreign' } },
      { apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', resources: ['a.yaml'] },
      signer(),
    ])
    expect(plan.resources.map(({ action, does }) => `${action}: ${does[0]}`)).toEqual([
      'skipped: a plan knows nothing of Deployment (apps/v1)',
      'skipped: a SignerNonce is written by the operator alone, and is no part of a plan',
      'skipped: a plan knows nothing of EthereumStake (other.example/v1)',
      'skipped: a plan renders no Kustomization: kustomize build DIR | kubectl staking plan -f -',
      expect.stringMatching(/^create: /),
    ])
    expect(plan.summary.skipped).toBe(4)
  })

  test('nothing but such is nothing to plan: it is no green plan', async () => {
    const kustomization = stringify({ apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', resources: ['../../base'] })
    const file = put('overlays/hoodi/kustomization.yaml', kustomization)
    await expect(planOf({ paths: [dirname(file)] })).rejects.toThrow(
      /^there is nothing to plan in .*overlays\/hoodi: a plan renders no Kustomization: kustomize build DIR \| kubectl staking plan -f -$/,
    )
    const web = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } }
    const nonce = object('SignerNonce', 'n', { chainId: 1, address: PAYER, nonce: 0 })
    const error = await planned([web, { ...web, metadata: { name: 'db' } }, nonce]).catch((thrown: unknown) => thrown)
    expect(String(error)).toMatch(
      /^InspectError: there is nothing to plan in .*: a plan knows nothing of Deployment \(apps\/v1\); a SignerNonce is written by the operator alone, and is no part of a plan$/,
    )
  })

  test('a kind that its own group does not have is refused: the cluster would refuse it', async () => {
    const plan = await planned([
      { apiVersion: 'staking.dev/v1alpha1', kind: 'EtheriumStake', metadata: { name: 'mistyped' } },
      { apiVersion: 'staking.dev/v9', kind: 'Nothing', metadata: { name: 'other' } },
    ])
    expect(plan.resources.map(({ action, refusals }) => `${action}: ${refusals[0]?.message}`)).toEqual([
      expect.stringMatching(/^refused: there is no kind EtheriumStake in staking\.dev: its kinds are EthereumStake, /),
      expect.stringMatching(/^refused: there is no kind Nothing in staking\.dev/),
    ])
    expect(plan.resources.flatMap(({ refusals }) => refusals.map(({ message }) => message)).join()).not.toMatch(/SignerNonce/)
    expect(exitCodeOf(plan, { strict: false })).toBe(2)
  })

  test.each(['v1alpha1', 'v1', 'Staking.dev/v1alpha1'])(
    'a kind of ours in apiVersion %s is refused: no cluster has it there',
    async (apiVersion) => {
      const plan = await planned([signer(), { ...stake('a'), apiVersion }], { server: clusterOf([]).server })
      expect(reasons(one(plan, 'a'))).toEqual([
        `schema: apiVersion: is ${apiVersion}: this version has EthereumStake in staking.dev/v1alpha1`,
      ])
      expect(exitCodeOf(plan, { strict: false })).toBe(2)
    },
  )

  test('a Solana stake is told, and a suspended stake pays nothing yet', async () => {
    const plan = await planned([solanaSigner('staker'), solanaStake('sol-1'), signer(), stake('later', { suspend: true })])
    expect(one(plan, 'sol-1')).toMatchObject({
      action: 'create',
      moves: { amount: '5 SOL', from: STAKER, returnsTo: STAKER },
      fees: { atMost: '0.000015 SOL' },
      refusals: [],
    })
    expect(one(plan, 'later').waits).toMatchObject([{ reason: 'Suspended' }])
    expect(one(await planned([signer(), stake('drawn', { mode: 'Plan' })]), 'drawn').waits).toMatchObject([{ reason: 'Planned' }])
  })

  test('an exit by a public key, without a cluster: whose validator it is stays unknown', async () => {
    const plan = await planned([signer(), exit('exit-1', { network: 'hoodi', pubkey: `0x${'ab'.repeat(48)}` })])
    const found = one(plan, 'exit-1')
    expect(found).toMatchObject({ action: 'create', moves: { is: 'asks', amount: 'whole balance' } })
    expect(found.unknown.join()).toMatch(/the validator's withdrawal address/)
    expect(plan.summary.pays).toEqual([])
  })
})

describe('manifests', () => {
  test('in the order of files and documents: folders by name, lists, JSON, with -R the folders in them', async () => {
    put('b.yaml', `${stringify(stake('b1'))}---\n---\n${stringify(stake('b2'))}`)
    put(
      'a.json',
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [stake('a1'), { apiVersion: 'v1', kind: 'List', items: [stake('a2')] }] }),
    )
    put(
      'sub/c.yml',
      stringify({ apiVersion: 'staking.dev/v1alpha1', kind: 'EthereumStakeList', items: [{ metadata: { name: 'c1' }, spec: {} }] }),
    )
    put('notes.txt', 'no manifest')
    const names = async (recursive: boolean) => (await planOf({ recursive })).resources.map(({ name }) => name)
    expect(await names(false)).toEqual(['a1', 'a2', 'b1', 'b2'])
    expect(await names(true)).toEqual(['a1', 'a2', 'b1', 'b2', 'c1'])
    expect((await planOf()).resources.map(({ source }) => source.slice(dir.length + 1))).toEqual([
      'a.json, item 1',
      'a.json, item 2, item 1',
      'b.yaml, document 1',
      'b.yaml, document 3',
    ])
  })

  test('of JSON, one after the other as jq writes them, whatever braces stand in their texts', async () => {
    const [a, b] = [stake('a', {}, { annotations: { note: '}{ \\" ]' } }), stake('b')]
    const named = async (text: string) => {
      const { resources } = await planOf({ paths: ['-'], stdin: () => Buffer.from(text) })
      return resources.map(({ name, source }) => `${name} of ${source}`)
    }
    const both = ['a of standard input, document 1', 'b of standard input, document 2']
    expect(await named(`${JSON.stringify(a)}\n${JSON.stringify(b)}\n`)).toEqual(both)
    expect(await named(`${JSON.stringify(a, null, 2)}${JSON.stringify(b)}`)).toEqual(both)
    expect(await named(`${JSON.stringify(a)}\n---\n${JSON.stringify(b)}`)).toEqual(both)
    for (const broken of [`${JSON.stringify(a)}\n${JSON.stringify(b)}}`, `${JSON.stringify(a)} and more`, JSON.stringify(a).slice(1), '}{'])
      await expect(named(broken)).rejects.toThrow(/^standard input(, document 1)? (is neither YAML nor JSON|is no object)/)
  })

  test('from standard input, and as kubectl reads YAML: an address without quotes is a text, and yes is true', async () => {
    const text = `${stringify(signer())}---\n${stringify(stake('a', { suspend: 'SUSPEND' }))}`
      .replace(`"${HOME}"`, HOME)
      .replace('SUSPEND', 'yes')
    expect(text).toContain(`withdrawalAddress: ${HOME}\n`)
    const plan = await planOf({ paths: ['-'], stdin: () => Buffer.from(text) })
    expect(one(plan, 'a')).toMatchObject({ action: 'create', source: 'standard input, document 2', waits: [{ reason: 'Suspended' }] })
  })

  test.each<[string, () => readonly string[], RegExp]>([
    [
      'a folder without manifests',
      () => [dir],
      /has no manifests: no file in it ends in \.json, \.yaml or \.yml \(folders in it are read with -R\)$/,
    ],
    ['a file that is not there', () => [join(dir, 'none.yaml')], /none\.yaml is not there/],
    ['what is not YAML', () => [put('bad.yaml', 'a: [\nb')], /bad\.yaml is neither YAML nor JSON \(line \d\)$/],
    [
      'a document that is not YAML',
      () => [put('bad.yaml', 'apiVersion: v1\nkind: A\n---\na: b: c\n')],
      /bad\.yaml, document 2 is neither YAML nor JSON/,
    ],
    ['a text', () => [put('bad.yaml', 'hello')], /bad\.yaml is no object of Kubernetes: it has no fields$/],
    ['an object without a kind', () => [put('bad.yaml', 'apiVersion: v1')], /kind is not set$/],
    ['bytes', () => [put('bad.yaml', Buffer.from([0xff, 0xfe, 0]))], /is not text in UTF-8$/],
    ['a field twice', () => [put('bad.yaml', 'kind: A\nkind: B\n')], /is neither YAML nor JSON \(line 2\)$/],
    ['a bomb of aliases', () => [put('bad.yaml', bomb)], /has aliases that cannot be followed$/],
    ['a URL', () => ['https://example.org/a.yaml'], /is a URL: fetch it first/],
    ['nothing', () => [put('bad.yaml', '')], /^there is no object to plan in .*bad\.yaml$/],
    ['nothing but comments', () => [put('bad.yaml', '# rendered by nobody\n---\n---\n')], /^there is no object to plan in /],
    ['an empty list', () => [put('bad.json', '{"apiVersion":"v1","kind":"List","items":[]}')], /^there is no object to plan in /],
    ['standard input twice', () => ['-', '-'], /standard input can be read once/],
    ['a networks file that is not there', () => [put('good.yaml', stringify(stake('a')))], /nowhere\.yaml cannot be read \(ENOENT\)/],
  ])('%s is an error in one line', async (what, paths, says) => {
    const networksFile = what.startsWith('a networks file') ? join(dir, 'nowhere.yaml') : undefined
    const error = await planOf({ paths: paths(), networksFile }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Error)
    expect(['InspectError', 'NetworksFileError']).toContain((error as Error).name)
    expect((error as Error).message).toMatch(says)
    expect((error as Error).message).not.toContain('\n')
  })
})

const bomb = `apiVersion: v1\nkind: A\na: &a [x,x,x,x,x,x,x,x,x,x]\n${['b', 'c', 'd', 'e']
  .map((name, index) => `${name}: &${name} [${Array(10).fill(`*${'abcd'[index]}`).join(',')}]`)
  .join('\n')}\n`

/** As the API server holds it. */
const withDefaults = (given: object): object => {
  const { kind, spec, status } = given as { readonly kind: string; readonly spec?: unknown; readonly status?: unknown }
  const definition = kinds.find((one) => one.kind === kind)
  const defaulted = definition === undefined ? spec : judge(definition, given as ManifestObject).object.spec
  return { ...given, ...(defaulted === undefined ? {} : { spec: defaulted }), ...(status === undefined ? {} : { status }) }
}

/** An API server that has these objects, and tries what is applied as it is told to. */
const clusterOf = (
  objects: readonly Json[],
  tried: (kind: string, name: string) => Error | undefined = () => undefined,
  forbidden: readonly string[] = [],
  // What the chart's MutatingAdmissionPolicy does where the cluster serves it: whoever plans asks.
  written: Json = {},
) => {
  const sent: { readonly method: string; readonly path: string }[] = []
  const all = objects.map((one, index) => ({
    ...withDefaults(one),
    metadata: { uid: `uid-${index}`, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z', ...(one.metadata as Json) },
  })) as unknown as readonly { readonly kind: string; readonly metadata: { readonly name: string; readonly namespace?: string } }[]
  const find = (kind: string, { name, namespace }: { readonly name: string; readonly namespace?: string }) =>
    all.find((one) => one.kind === kind && one.metadata.name === name && one.metadata.namespace === namespace)
  const cluster = {
    server: 'api.example',
    context: 'test',
    namespace: 'team-a',
    api: {
      async call({ method, path, body }: { readonly method: string; readonly path: string; readonly body?: string }) {
        sent.push({ method, path })
        const given = JSON.parse(body ?? '{}') as {
          readonly kind: string
          readonly metadata: { readonly name: string; readonly namespace?: string; readonly annotations?: Json }
        }
        const error = tried(given.kind, given.metadata.name)
        if (error !== undefined) throw error
        const before = find(given.kind, given.metadata)
        const { annotations }: { readonly annotations?: Json } = given.metadata
        const ofNew = before === undefined ? { annotations: { ...annotations, ...written } } : {}
        return { ...before, ...withDefaults(given), metadata: { ...before?.metadata, ...given.metadata, ...ofNew } }
      },
    },
    async list({ kind }: { readonly kind: string }, { namespace }: { readonly namespace?: string }) {
      if (forbidden.includes(kind)) return 'forbidden'
      return all.filter((one) => one.kind === kind && (namespace === undefined || one.metadata.namespace === namespace))
    },
    async get({ kind }: { readonly kind: string }, ref: { readonly name: string; readonly namespace?: string }) {
      return forbidden.includes(kind) ? 'forbidden' : (find(kind, ref) ?? 'absent')
    },
    close: async () => {},
  }
  const server = {
    cluster: cluster as unknown as Cluster,
    fieldManager: 'kubectl',
    lease: { namespace: 'staking-system', name: 'staking-operator' },
  }
  return { server, sent }
}
const teamA = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a', labels: {} } }
const record = (name: string, spec: Json, status: Json = {}) => ({
  ...object('StakingTransaction', name, {
    chain: 'Ethereum',
    network: 'hoodi',
    chainId: 560048,
    purpose: 'Deposit',
    subject: `0x${'cd'.repeat(48)}`,
    amount: '32 ETH',
    generation: 0,
    signer: 'treasury',
    from: PAYER,
    call: { to: HOME, data: '0x', valueWei: '32000000000000000000' },
    ...spec,
  }),
  status,
})
const owner = (name: string) => ({ owner: { kind: 'EthereumStake', namespace: 'team-a', name, originUid: 'o-1' } })
const originOf = (name: string) => ({ namespace: 'team-a', annotations: { 'staking.dev/origin': `o-1/team-a/${name}` } })
const cancelledAt = (at: string) => ({
  state: 'Waiting',
  attempts: [
    { hash: '0xaa', kind: 'Call', nonce: 0, generation: 0, at },
    { hash: '0xab', kind: 'Cancel', nonce: 0, generation: 0, at },
  ],
  closed: [{ nonce: 0, generation: 0, by: 'Cancel', hash: '0xab', blockNumber: 1 }],
})
const landed = (at: string) => ({
  place: 0,
  attempts: [{ hash: '0xaa', kind: 'Call', nonce: 0, generation: 0, at }],
  outcome: { is: 'Landed', hash: '0xaa', nonce: 0, blockNumber: 1 },
})

describe('with a cluster', () => {
  test('its signers and its log count, and nothing but reads and tries is sent', async () => {
    const hourAgo = new Date(clock.now().getTime() - 3_600_000).toISOString()
    const { server, sent } = clusterOf([
      teamA,
      signer({ limits: [{ window: '24h', maxTotalEth: '96', maxCount: 5 }] }),
      record('old', owner('before'), landed(hourAgo)),
      record('waits', owner('waiting')),
    ])
    const plan = await planned([stake('a'), stake('b')], { server })
    expect(one(plan, 'a').limits).toMatchObject([
      { allows: '5 transactions and 96 ETH in 24h', used: '1 transaction and 32 ETH', leftAfter: '2 transactions and 0 ETH' },
    ])
    expect(one(plan, 'a').waits).toEqual([])
    expect(one(plan, 'b').waits.map(({ reason }) => reason)).toEqual(['LimitReached'])
    expect(sent.length).toBe(2)
    for (const { method, path } of sent) expect([method, new URLSearchParams(path.split('?')[1]).get('dryRun')]).toEqual(['PATCH', 'All'])
  })

  test('a limit that is lower than what is used already says so, and from when on more is signed', async () => {
    const hourAgo = new Date(clock.now().getTime() - 3_600_000).toISOString()
    const inHours = (hours: number) => timestamp(new Date(clock.now().getTime() + hours * 3_600_000))
    const { server } = clusterOf([
      teamA,
      signer({ limits: [{ window: '24h', maxCount: 10 }] }),
      record('one', owner('one'), landed(new Date(clock.now().getTime() - 7_200_000).toISOString())),
      record('two', owner('two'), landed(hourAgo)),
      record('other', { ...owner('other'), from: HOME }, landed(hourAgo)),
    ])
    const lowered = one(await planned([signer({ limits: [{ window: '24h', maxCount: 1 }] })], { server }), 'treasury')
    expect(lowered.limits).toEqual([
      {
        signer: 'treasury',
        allows: '1 transaction in 24h on hoodi',
        used: '2 transactions',
        leftAfter: '0 transactions',
        freesAt: inHours(22),
      },
    ])
    expect(lowered.waits).toEqual([
      {
        by: 'operator',
        reason: 'LimitReached',
        message: `It may sign 1 transaction in 24h on hoodi (spec.policy.limits), and 2 transactions are used already: nothing more is signed before ${inHours(23)}.`,
      },
    ])
    const raised = one(await planned([signer({ limits: [{ window: '24h', maxTotalEth: '96' }] })], { server }), 'treasury')
    expect(raised.limits).toMatchObject([{ used: '64 ETH', leftAfter: '32 ETH' }])
    expect(raised.waits).toEqual([])
  })

  test('what the API server refuses is refused in its words', async () => {
    const invalid = new KubeError(
      422,
      'Invalid',
      'patch ethereumstakes: EthereumStake "a" is invalid: spec.network: network cannot be changed',
    )
    const { server } = clusterOf([teamA, signer(), stake('a')], () => invalid)
    const plan = await planned([stake('a', { network: 'sepolia' })], { server })
    expect(one(plan, 'a')).toMatchObject({
      action: 'refused',
      refusals: [{ by: 'API server', message: expect.stringContaining('network cannot be changed') }],
    })
    expect(inWords(plan, plain)).toMatch(
      /^! refused {3}EthereumStake team-a\/a .*\n {4}refused {3}by the API server: EthereumStake "a" is invalid/m,
    )
    expect(exitCodeOf(plan, { strict: false })).toBe(2)
  })

  test('what an admission policy answers with 403 is a refusal; what RBAC does is not known', async () => {
    const denied = new KubeError(403, 'Forbidden', 'patch ethereumstakes: admission webhook "x" denied the request: no')
    const { server } = clusterOf([teamA, signer()], () => denied)
    expect(one(await planned([stake('a')], { server }), 'a').action).toBe('refused')
    const rights = new KubeError(
      403,
      'Forbidden',
      'patch ethereumstakes: ethereumstakes.staking.dev "a" is forbidden: User "u" cannot patch resource "ethereumstakes" in API group "staking.dev" in the namespace "team-a"',
    )
    const mayNot = one(await planned([stake('a')], { server: clusterOf([teamA, signer()], () => rights).server }), 'a')
    expect(mayNot.action).toBe('create')
    expect(mayNot.unknown.join()).toMatch(/you may not apply it \(.*User "u" cannot patch resource/)
    // Its own rules are still tried.
    const bad = one(await planned([stake('a', { amountEth: '1' })], { server: clusterOf([teamA, signer()], () => rights).server }), 'a')
    expect(bad.action).toBe('refused')
  })

  describe('who has asked', () => {
    const by = (user: string) => ({ annotations: { 'staking.dev/requested-by': user } })
    const asking = (approval: Json = {}) => signer({ approval: { by: [{ group: 'approvers' }], ...approval } })
    const denied = (must: string) =>
      new KubeError(
        403,
        'Forbidden',
        `patch ethereumstakes: ethereumstakes.staking.dev "a" is forbidden: ValidatingAdmissionPolicy 'requesters.staking.dev' with binding 'requesters.staking.dev' denied request: annotation staking.dev/requested-by says who has asked for it, a user a line. It must be ${must}`,
      )

    test('is whoever applies it, and not who plans it: what the API server says of that is not known, and all else is told', async () => {
      const { server } = clusterOf([teamA, asking()], () => denied('exactly: planner'))
      const plan = await planned([stake('a', {}, by('system:serviceaccount:argocd:controller'))], { server })
      expect(one(plan, 'a')).toMatchObject({ action: 'create', refusals: [], waits: [{ reason: 'ApprovalRequired' }] })
      expect(one(plan, 'a').unknown.join()).toMatch(
        /it was tried as you, and annotation staking\.dev\/requested-by has to name whoever applies it \(.* It must be exactly: planner\)/,
      )
      expect([exitCodeOf(plan, { strict: false }), exitCodeOf(plan, { strict: true })]).toEqual([0, 2])
      // Its own rules are still tried.
      expect(one(await planned([stake('a', { amountEth: '1' }, by('argo'))], { server }), 'a').action).toBe('refused')
    })

    test.each<[string, Json]>([
      ['leaves the list as it is', stake('a', { maxFeePerGasGwei: '70' }, by('ci'))],
      ['adds one user to the list', stake('a', { maxFeePerGasGwei: '70' }, by('ci\nargo'))],
      ['says nothing of it', stake('a', { maxFeePerGasGwei: '70' })],
    ])('is whoever changes it, where the manifest %s: one of them may apply it', async (_what, changed) => {
      const { server } = clusterOf([teamA, asking(), stake('a', {}, by('ci'))], () =>
        denied('exactly: ci, then on a line of its own planner'),
      )
      const found = one(await planned([changed], { server }), 'a')
      expect(found).toMatchObject({ action: 'change', refusals: [] })
      expect(found.unknown.join()).toMatch(/has to name whoever applies it/)
    })

    const applied = {
      manager: 'kubectl',
      operation: 'Apply',
      fieldsV1: { 'f:metadata': { 'f:annotations': { 'f:staking.dev/requested-by': {} } } },
    }
    test.each<[string, Json, Json?]>([
      ['names somebody else in their place', stake('a', {}, by('argo'))],
      ['adds a user, and changes nothing', stake('a', {}, by('ci\nargo'))],
      ['takes the list away, and changes nothing', stake('a')],
      ['takes away the list that it had applied', stake('a', { maxFeePerGasGwei: '70' }), { managedFields: [applied] }],
      ['puts a user before the others', stake('a', { maxFeePerGasGwei: '70' }, by('argo\nci'))],
      ['adds two', stake('a', { maxFeePerGasGwei: '70' }, by('ci\nargo\nflux'))],
      ['ends in an empty line', stake('a', { maxFeePerGasGwei: '70' }, by('ci\nargo\n'))],
    ])('is nobody, where the manifest %s: that is refused, whoever applies it', async (_what, changed, more = {}) => {
      const { server } = clusterOf([teamA, asking(), stake('a', {}, { ...by('ci'), ...more })], () => denied('exactly: ci'))
      const plan = await planned([changed], { server })
      expect(one(plan, 'a')).toMatchObject({
        action: 'refused',
        refusals: [{ by: 'API server', message: expect.stringContaining('It must be exactly: ci') }],
      })
      expect(exitCodeOf(plan, { strict: false })).toBe(2)
    })

    test('is one user, where it is created: two, or one and an empty line, are refused', async () => {
      const { server } = clusterOf([teamA, asking()], () => denied('exactly: planner'))
      for (const users of ['argo\nflux', 'argo\n', '\nargo'])
        expect(one(await planned([stake('a', {}, by(users))], { server }), 'a').action).toBe('refused')
    })

    test('of what was created without the annotation stays unknown, whoever applies it: that is refused', async () => {
      const late = denied('left out, since it was when this was created')
      const { server } = clusterOf([teamA, asking(), stake('a')], () => late)
      expect(one(await planned([stake('a', {}, by('argo'))], { server }), 'a')).toMatchObject({
        action: 'refused',
        refusals: [{ by: 'API server', message: expect.stringContaining('must be left out') }],
      })
    })

    test('cannot be proven where neither the manifest nor the cluster says so: an approval is needed, and none would count', async () => {
      const { server } = clusterOf([teamA, asking()])
      const plan = await planned([stake('a')], { server })
      expect(one(plan, 'a')).toMatchObject({ action: 'refused', waits: [], refusals: [{ by: 'operator', reason: 'ApprovalUnproven' }] })
      expect(reasons(one(plan, 'a')).join()).toMatch(
        /needs 1 approval of group approvers.* this cluster does not write annotation staking\.dev\/requested-by\. Add it, with the user name/,
      )
      expect(exitCodeOf(plan, { strict: false })).toBe(2)
      const there = one(await planned([stake('a')], { server: clusterOf([teamA, asking(), stake('a')]).server }), 'a')
      expect(reasons(there).join()).toMatch(/^ApprovalUnproven: .* it was created without annotation .* Create it anew/)
    })

    test.each<[string, Json, Json, Json]>([
      ['the manifest says so', asking(), by('argo'), {}],
      ['the cluster writes it', asking(), {}, by('planner').annotations],
      ['the policy lets that go', asking({ allowUnrecorded: true }), {}, {}],
    ])('can be, or need not be, where %s: it waits for its approval', async (_what, from, metadata, written) => {
      const { server } = clusterOf([teamA, from], undefined, [], written)
      expect(one(await planned([stake('a', {}, metadata)], { server }), 'a')).toMatchObject({
        action: 'create',
        refusals: [],
        waits: [{ reason: 'ApprovalRequired' }],
      })
    })

    test('is of no concern where no approval is needed', async () => {
      const { server } = clusterOf([teamA, asking({ aboveEth: '32' })])
      expect(one(await planned([stake('a')], { server }), 'a')).toMatchObject({ action: 'create', refusals: [], waits: [] })
    })
  })

  test('a namespace that is not there yet is said; its labels are those of the manifests', async () => {
    const missing = new KubeError(404, 'NotFound', 'patch ethereumstakes: namespaces "team-a" not found')
    const byLabels = signer({ allowedNamespaces: { selector: { matchLabels: { stakes: 'ours' } } } })
    const { server } = clusterOf([byLabels], (kind) => (kind === 'EthereumStake' ? missing : undefined))
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a', labels: { stakes: 'ours' } } }
    const found = one(await planned([namespace, stake('a')], { server }), 'a')
    expect(found).toMatchObject({ action: 'create', policy: [{ says: 'admits' }] })
    expect(found.unknown.join()).toMatch(/namespace team-a does not exist yet/)
  })

  test('a namespace that neither the cluster nor the manifests have is refused, as the API server refuses it', async () => {
    const missing = new KubeError(404, 'NotFound', 'patch ethereumstakes: namespaces "taem-a" not found')
    const rights = new KubeError(
      403,
      'Forbidden',
      'patch ethereumstakes: ethereumstakes.staking.dev "a" is forbidden: User "u" cannot patch resource "ethereumstakes" in API group "staking.dev" in the namespace "taem-a"',
    )
    for (const answer of [missing, rights]) {
      const { server } = clusterOf([teamA, signer()], (kind) => (kind === 'EthereumStake' ? answer : undefined))
      const plan = await planned([stake('a', {}, { namespace: 'taem-a' })], { server })
      expect(one(plan, 'a')).toMatchObject({
        action: 'refused',
        refusals: [{ by: 'API server', message: 'namespaces "taem-a" not found: create it, or add it to these manifests' }],
      })
      expect(exitCodeOf(plan, { strict: false })).toBe(2)
    }
  })

  test('what is there is unchanged or changes by field, and what was paid is not paid again', async () => {
    const paid = { ...stake('a', { credentialsType: 'Compounding' }, originOf('a')), status: { transaction: { state: 'Confirmed' } } }
    const { server } = clusterOf([teamA, signer(), paid, record('dep', owner('a'), landed('2026-01-01T00:00:00Z'))])
    const plan = await planned([stake('a', { suspend: true }), signer()], { server })
    expect(one(plan, 'a')).toMatchObject({ action: 'change', changes: [{ field: 'spec.suspend', to: true }] })
    expect(one(plan, 'a').moves).toBeUndefined()
    expect(one(plan, 'a').does[0]).toMatch(/deposit of 32 ETH was made before/)
    expect(one(plan, 'treasury').action).toBe('unchanged')
    expect(plan.summary.pays).toEqual([])
  })

  test('what was cancelled pays when it goes on: its amount, its limits and its approvals are told', async () => {
    const limits = [{ window: '24h', maxCount: 1 }]
    const approval = { by: [{ group: 'approvers' }] }
    const there = [
      teamA,
      signer({ limits, approval }),
      stake('a', { suspend: true }, originOf('a')),
      record('dep', owner('a'), cancelledAt('2026-01-01T00:00:00Z')),
    ]
    const plan = await planned([stake('a', {}, originOf('a'))], { server: clusterOf(there).server })
    expect(one(plan, 'a')).toMatchObject({
      moves: { is: 'pays', amount: '32 ETH' },
      limits: [{ used: '0 transactions', leftAfter: '0 transactions' }],
      approvals: ['1 approval of group approvers, by StakingSigner treasury (spec.policy.approval)'],
    })
    expect(one(plan, 'a').does.join()).not.toMatch(/nothing is paid again/)
  })

  test.each<[string, Json, Json, RegExp]>([
    ['paid', {}, landed('2026-01-01T00:00:00Z'), /has paid 32 ETH before \(StakingTransaction dep\).*Nothing is bought again/],
    ['may pay yet', {}, { place: 0, attempts: landed('2026-01-01T00:00:00Z').attempts }, /Nothing is bought again/],
  ])(
    'a stake that is made anew under the name of one that has %s is refused, as the operator stalls on it',
    async (_what, spec, status, says) => {
      const { server } = clusterOf([teamA, signer(), record('dep', { ...owner('a'), apiId: 'stk_1' }, status)])
      const plan = await planned([stake('a', spec)], { server })
      expect(reasons(one(plan, 'a')).join()).toMatch(/^AlreadyStaked: EthereumStake team-a\/a of UID o-1 /)
      expect(reasons(one(plan, 'a')).join()).toMatch(says)
      expect(exitCodeOf(plan, { strict: false })).toBe(2)
      // It resumes what it has made itself, and may take that over.
      for (const again of [stake('a', spec, originOf('a')), stake('a', { adopt: { stakeId: 'stk_1' } })])
        expect(one(await planned([again], { server }), 'a')).toMatchObject({ action: 'create', refusals: [] })
      const reverted = { outcome: { is: 'Reverted', hash: '0xaa', nonce: 0, blockNumber: 1 } }
      for (const nothing of [cancelledAt('2026-01-01T00:00:00Z'), reverted]) {
        const after = clusterOf([teamA, signer(), record('dep', owner('a'), nothing)])
        expect(one(await planned([stake('a')], { server: after.server }), 'a').moves).toMatchObject({ amount: '32 ETH' })
      }
    },
  )

  test('a withdrawal that is made anew under its name is refused; of an exit only what the consensus layer made of it is not known', async () => {
    const pubkey = `0x${'ab'.repeat(48)}`
    const asked = (kind: string, purpose: string) =>
      record(
        `${kind}-record`,
        { purpose, owner: { kind, namespace: 'team-a', name: 'again', originUid: 'o-1' } },
        landed('2026-01-01T00:00:00Z'),
      )
    const there = [teamA, signer(), asked('ValidatorWithdrawal', 'Withdrawal'), asked('ValidatorExit', 'Exit')]
    const { server } = clusterOf(there)
    const withdrawal = { ...exit('again', { network: 'hoodi', pubkey }, { amountEth: '1' }), kind: 'ValidatorWithdrawal' }
    expect(reasons(one(await planned([withdrawal], { server }), 'again')).join()).toMatch(
      /^AlreadyRequested: ValidatorWithdrawal team-a\/again of UID o-1 has asked for this before .* another name\.$/,
    )
    const found = one(await planned([exit('again', { network: 'hoodi', pubkey })], { server }), 'again')
    expect(found).toMatchObject({ action: 'create', refusals: [] })
    expect(found.moves).toBeUndefined()
    expect(found.unknown.join()).toMatch(/whether the consensus layer has dropped that/)
  })

  test('an exit that another resource has asked for, in the log or in the same manifests, is not asked for again', async () => {
    const pubkey = `0x${'ab'.repeat(48)}`
    const validator = { network: 'hoodi', pubkey }
    const other = {
      purpose: 'Exit',
      subject: pubkey,
      owner: { kind: 'ValidatorExit', namespace: 'team-a', name: 'other', originUid: 'o-2' },
    }
    const there = (...records: readonly Json[]) => ({ server: clusterOf([teamA, signer({ validators: 'Any' }), ...records]).server })
    const { outcome, ...open } = landed('2026-01-01T00:00:00Z')
    const mayLand = one(await planned([exit('exit-1', validator)], there(record('exit', other, open))), 'exit-1')
    expect(reasons(mayLand).join()).toMatch(/^AlreadyRequested: ValidatorExit team-a\/other of UID o-2 has asked for this before/)
    const hasLanded = one(await planned([exit('exit-1', validator)], there(record('exit', other, { ...open, outcome }))), 'exit-1')
    expect([hasLanded.refusals, hasLanded.moves]).toEqual([[], undefined])
    expect(hasLanded.unknown.join()).toMatch(/whether the consensus layer has dropped that/)
    const elsewhere = record('exit', { ...other, network: 'mainnet', chainId: 1 }, open)
    expect(one(await planned([exit('exit-1', validator)], there(elsewhere)), 'exit-1').moves).toMatchObject({ is: 'asks' })
    const twice = await planned([exit('one', validator, { suspend: true }), exit('two', validator), exit('three', validator)], there())
    expect(twice.resources.map(({ name, action }) => `${name} ${action}`)).toEqual(['one create', 'two create', 'three refused'])
    expect(reasons(one(twice, 'three')).join()).toMatch(/^AlreadyRequested: ValidatorExit team-a\/two of these manifests/)
    expect(exitCodeOf(twice, { strict: false })).toBe(2)
  })

  test('the way out of a Solana stake is told with the approvals of each step that is left', async () => {
    const approval = { by: [{ group: 'treasury' }] }
    const step = (name: string, purpose: string) =>
      record(
        name,
        {
          chain: 'Solana',
          network: 'devnet',
          chainId: undefined,
          genesisHash: 'genesis',
          purpose,
          amount: '5 SOL',
          from: STAKER,
          signer: 'staker',
          call: undefined,
          owner: { kind: 'SolanaStake', namespace: 'team-a', name: 'sol', originUid: 'o-1' },
        },
        { attempts: [{ hash: 's', kind: 'Call', at: '2026-01-01T00:00:00Z' }], outcome: { is: 'Landed', hash: 's', blockNumber: 1 } },
      )
    const live = (desiredState: string) => ({ ...solanaStake('sol', { desiredState }), metadata: { name: 'sol', ...originOf('sol') } })
    const of = (steps: readonly Json[], from: string) =>
      planned([live('Withdrawn')], { server: clusterOf([teamA, solanaSigner('staker', { approval }), live(from), ...steps]).server })
    const paid = step('paid', 'SolanaStake')
    const words = (what: string) => `1 approval of group treasury for ${what}, by StakingSigner staker (spec.policy.approval)`
    const whole = one(await of([paid], 'Active'), 'sol')
    expect(whole.approvals).toEqual([words('its deactivation'), words('its withdrawal')])
    const rest = one(await of([paid, step('cooled', 'SolanaDeactivation')], 'Inactive'), 'sol')
    expect(rest.approvals).toEqual([words('its withdrawal')])
    expect(rest.does.join()).not.toContain('deactivates')
    expect(one(await of([paid, step('cooled', 'SolanaDeactivation'), step('out', 'SolanaWithdrawal')], 'Withdrawn'), 'sol').waits).toEqual(
      [],
    )
  })

  test('a signer that is nowhere is refused; one that may not be read is not known', async () => {
    expect(reasons(one(await planned([stake('a')], { server: clusterOf([teamA]).server }), 'a')).join()).toMatch(/^SignerNotFound/)
    const hidden = one(await planned([stake('a')], { server: clusterOf([teamA, signer()], undefined, ['StakingSigner']).server }), 'a')
    expect(hidden).toMatchObject({ action: 'create', policy: [] })
    expect(hidden.unknown.join()).toMatch(/you may not read StakingSigners/)
  })

  test('a log that may not be read leaves the limits unknown, never free', async () => {
    const limited = signer({ limits: [{ window: '24h', maxCount: 1 }] })
    const { server } = clusterOf([teamA, limited, record('old', owner('before'), landed(clock.now().toISOString()))], undefined, [
      'StakingTransaction',
    ])
    const found = one(await planned([stake('a')], { server }), 'a')
    expect(found.limits).toEqual([{ signer: 'treasury', allows: '1 transaction in 24h' }])
    expect(found.unknown.join()).toMatch(/what of the limits of StakingSigner treasury is used already/)
  })

  test('a new signer with the address of an older one is refused, and nothing is paid with it', async () => {
    const { server } = clusterOf([teamA, signer({}, {}, 'older')])
    const plan = await planned([signer(), stake('a')], { server })
    expect(reasons(one(plan, 'treasury')).join()).toMatch(/^DuplicateSigner: StakingSigner older/)
    expect(reasons(one(plan, 'a')).join()).toMatch(/^DuplicateSigner/)
  })

  test('a suspended operator is said of all that would move money', async () => {
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace: 'staking-system', name: 'staking-operator', annotations: { 'staking.dev/suspend': 'fire' } },
    }
    const plan = await planned([stake('a')], { server: clusterOf([teamA, signer(), lease]).server })
    expect(plan.operatorSuspended).toBe(true)
    expect(one(plan, 'a').waits.map(({ reason }) => reason)).toEqual(['OperatorSuspended'])
  })

  test('a name that would lead elsewhere in the API is refused, and not asked for', async () => {
    const { server, sent } = clusterOf([teamA, signer()])
    const plan = await planned([stake('..'), stake('a/b'), stake('ok', {}, { namespace: 'kube-system/../x' })], { server })
    expect(plan.resources.map(({ action }) => action)).toEqual(['refused', 'refused', 'refused'])
    expect(sent).toEqual([])
  })

  test('a plan that is ended while the API server tries it ends with that, and with no word of the API server', async () => {
    const ended = new Error('SIGINT received')
    const stop = new AbortController()
    const { server } = clusterOf([teamA, signer()], () => {
      stop.abort(ended)
      return ended
    })
    put('all.yaml', stringify(stake('a')))
    const options = { paths: [dir], recursive: false, namespace: undefined, networksFile: undefined, server, clock }
    await expect(makePlan(options, stop.signal)).rejects.toBe(ended)
  })

  test('an API server that is away is an error, and no plan', async () => {
    const { server } = clusterOf([teamA, signer()], () => new KubeError(500, 'InternalError', 'patch ethereumstakes: etcd is away'))
    await expect(planned([stake('a')], { server })).rejects.toThrow(/^the API server api\.example: patch ethereumstakes: etcd is away$/)
  })
})

describe('in words', () => {
  test('the same manifests give the same text, in the order of the files', async () => {
    const objects = [signer({ limits: [{ window: '24h', maxCount: 3 }] }), stake('b'), stake('a', { amountEth: '65' })]
    const first = inWords(await planned(objects), plain)
    expect(inWords(await planned(objects), plain)).toBe(first)
    expect([...first.matchAll(/^[+!] (\w+) +(\w+) (\S+)/gm)].map(([, action, kind, name]) => `${action} ${kind} ${name}`)).toEqual([
      'create StakingSigner treasury',
      'create EthereumStake team-a/b',
      'refused EthereumStake team-a/a',
    ])
    expect(first.trimEnd().split('\n').at(-1)).toBe(
      'Plan: 2 to create, 0 to change, 0 unchanged, 1 refused (of 2 not all is known). Pays 32 ETH on hoodi.',
    )
  })

  test('colours are asked for, and nothing that others wrote steers the terminal', async () => {
    const plan = await planned([stake('a', { signer: 'x\u001b[31m' })])
    expect(inWords(plan, plain)).not.toContain('\u001b')
    expect(inWords(plan, painter({ isTTY: true }, {}))).toContain('\u001b[31m! refused')
    expect(inWords(plan, painter({ isTTY: true }, { NO_COLOR: '1' }))).not.toContain('\u001b')
  })
})
