import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { dashboardFiles } from '../../../scripts/dashboards/files.ts'
import { blocksOf } from '../../../scripts/docs/blocks.ts'
import { repository, sitePages } from '../../../scripts/docs/pages.ts'
import { knownNetworks } from '../../../src/chains/ethereum/networks.ts'
import { knownGenesisHashes } from '../../../src/chains/solana/networks.ts'
import { parseRemoteSignersFile } from '../../../src/operator/keys/remote/signers-file.ts'
import { parseNetworksFile } from '../../../src/operator/networks/networks-file.ts'
import { parseServiceConfig } from '../../../src/service/config.ts'
import { chart, type Helm, type Rendered, startHelm } from '../../cluster/chart.ts'
import { matrix, remoteSigners } from './harness.ts'

let helm: Helm
const stopping = new AbortController()
beforeAll(async () => {
  helm = await startHelm(undefined, stopping.signal)
}, 300_000)
afterAll(() => {
  stopping.abort()
  helm?.stop()
})

const find = (rendered: readonly Rendered[], kind: string, name: RegExp): Rendered => {
  const found = rendered.find((object) => object.kind === kind && name.test(object.metadata.name))
  if (found === undefined) throw new Error(`no ${kind} ${name}`)
  return found
}
const SERVICE = { enabled: true, replicaCount: 1, config: { solana: { domain: 'staking.example' } } }
const dataOf = (object: Rendered, file: string): string => ((object.data ?? object.stringData) as Record<string, string>)[file] ?? ''

describe.each(matrix)('$what', ({ values }) => {
  test('passes helm lint --strict', async () => {
    const { code, stdout, stderr } = await helm.run(['lint', '--strict', chart, '--values', helm.valuesFile(values)])
    expect(code, stdout + stderr).toBe(0)
  })

  test('each object is there once, in the namespace of the release or in none', async () => {
    const rendered = await helm.render(values)
    const names = rendered.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(names.toSorted()).toEqual([...new Set(names)].toSorted())
    for (const { metadata } of rendered) expect([undefined, 'staking-system']).toContain(metadata.namespace)
  })

  test('every pod is what the restricted Pod Security Standard asks for, and its volumes are there', async () => {
    const rendered = (await helm.render(values)) as unknown as { kind: string; spec: Pod & { template: { spec: Pod } } }[]
    const deployed = rendered.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.template.spec)
    const tests = rendered.filter(({ kind }) => kind === 'Pod').map(({ spec }) => spec)
    expect([deployed.length > 0, tests.length]).toEqual([true, 1])
    for (const pod of [...deployed, ...tests]) {
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
      for (const container of pod.containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
        expect(container.resources.limits.memory).toMatch(/^\d+(Mi|Gi)$/)
        expect(pod.volumes.map(({ name }) => name).toSorted()).toEqual(container.volumeMounts.map(({ name }) => name).toSorted())
      }
    }
  })
})
interface Pod {
  readonly imagePullSecrets?: readonly object[]
  readonly securityContext: object
  readonly volumes: readonly { readonly name: string }[]
  readonly containers: readonly {
    readonly args: readonly string[]
    readonly image: string
    readonly securityContext: object
    readonly resources: { readonly limits: { readonly memory: string } }
    readonly volumeMounts: readonly { readonly name: string }[]
  }[]
}

test('the dashboards are ConfigMaps that the sidecar of Grafana finds, each with its file as it is', async () => {
  const rendered = await helm.render({ ...matrix[3]?.values })
  const maps = rendered.filter(({ kind, metadata }) => kind === 'ConfigMap' && /-dashboard$/.test(metadata.name))
  expect(maps.map(({ metadata }) => metadata.name)).toEqual(
    ['chains', 'fleet', 'service', 'signers'].map((name) => `stakes-${name}-dashboard`),
  )
  for (const map of maps) {
    expect(map.metadata.labels).toMatchObject({ grafana_dashboard: '1' })
    expect(map.metadata.annotations).toEqual({ grafana_folder: 'Staking' })
    const [[file, content] = []] = Object.entries(map.data as Record<string, string>)
    expect(JSON.parse(content ?? '')).toEqual(JSON.parse(dashboardFiles().get(`files/dashboards/${file}`) ?? ''))
  }
})

test('the keys of all signers are one volume, of Secrets that may come later', async () => {
  const sources = async (values: object) => {
    const deployment = find(await helm.render({ ...matrix[0]?.values, ...values }), 'Deployment', /^staking-operator$/)
    const { volumes } = (deployment.spec as { template: { spec: { volumes: { name: string; projected?: { sources: object[] } }[] } } })
      .template.spec
    return volumes.find(({ name }) => name === 'keys')?.projected?.sources
  }
  const whole = (name: string) => ({ secret: { name, optional: true } })
  const own = { secret: { name: 'vault-key', optional: true, items: [{ key: 'privateKey', path: 'vault/privateKey' }] } }
  const signers = [{ keyName: 'vault', secretName: 'vault-key' }]
  expect(await sources({})).toEqual([whole('staking-signer-keys')])
  expect(await sources({ signerSecrets: ['a', 'b'], signers })).toEqual([whole('a'), whole('b'), own])
  expect(await sources({ signerSecrets: [], signers })).toEqual([own])
  expect(await sources({ signerSecrets: [] })).toBeUndefined()
})

test('what both programs are given is what they read', async () => {
  const rendered = await helm.render(matrix[1]?.values ?? {})
  const networks = parseNetworksFile(dataOf(find(rendered, 'ConfigMap', /-networks$/), 'networks.yaml'), 'networks.yaml')
  expect(networks.ethereum[0]).toMatchObject({
    config: { name: 'hoodi', chainId: 560048 },
    api: { url: 'http://staking-operator-service.staking-system:8080', apiKeyFile: '/var/run/staking/api/key' },
  })
  expect(networks.solana[0]?.config.name).toBe('devnet')
  const service = parseServiceConfig(dataOf(find(rendered, 'Secret', /-service$/), 'service.yaml'), 'service.yaml')
  expect(service).toMatchObject({
    listen: { port: 8080 },
    operations: { port: 8081 },
    database: { dataDir: '/var/lib/staking-service' },
    seedFile: '/var/run/staking/seed/seed',
    solana: { domain: 'staking.example' },
  })
  expect(service.networks.map(({ name }) => name)).toEqual(['hoodi', 'devnet'])
})

test('with a certificate, the service is served and asked by https', async () => {
  const rendered = await helm.render(matrix[5]?.values ?? {})
  const networks = parseNetworksFile(dataOf(find(rendered, 'ConfigMap', /-networks$/), 'networks.yaml'), 'networks.yaml')
  expect(networks.ethereum[0]?.api.url).toBe('https://staking-operator-service.staking-system:8080')
  const service = parseServiceConfig(dataOf(find(rendered, 'Secret', /-service$/), 'service.yaml'), 'service.yaml')
  expect(service.tls).toEqual({ certFile: '/var/run/staking/tls/tls.crt', keyFile: '/var/run/staking/tls/tls.key' })
  expect(find(rendered, 'Service', /-service$/).spec).toMatchObject({
    ports: [
      { name: 'https', port: 8080, targetPort: 'https' },
      { name: 'metrics', port: 8081 },
    ],
  })
  const podOf = (name: RegExp) =>
    (find(rendered, 'Deployment', name) as unknown as { spec: { template: { spec: { volumes: object[]; containers: object[] } } } }).spec
      .template.spec
  const pod = podOf(/-service$/)
  const items = ['tls.crt', 'tls.key'].map((key) => ({ key, path: key }))
  expect(pod.volumes).toContainEqual({ name: 'tls', secret: { secretName: 'staking-api-tls', defaultMode: expect.any(Number), items } })
  expect(pod.containers[0]).toMatchObject({
    ports: [{ name: 'https', containerPort: 8080 }, { name: 'metrics' }],
    volumeMounts: expect.arrayContaining([{ name: 'tls', mountPath: '/var/run/staking/tls', readOnly: true }]),
    // Of the port that has health and metrics alone, which is http.
    readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' } },
  })
  // The authority, and not the key beside it.
  expect(podOf(/^staking-operator$/).volumes).toContainEqual({
    name: 'api-ca',
    secret: { secretName: 'staking-api-tls', items: [{ key: 'ca.crt', path: 'ca.crt' }] },
  })
  const own = { ...matrix[1]?.values, service: { enabled: true, replicaCount: 1, config: { tls: { certFile: '/a', keyFile: '/b' } } } }
  const byHand = dataOf(find(await helm.render(own), 'ConfigMap', /-networks$/), 'networks.yaml')
  expect(byHand).toContain('https://staking-operator-service.staking-system:8080')
})

test('series keep the namespace of what they tell of', async () => {
  for (const [values, kind, endpoints] of [
    [{ serviceMonitor: { enabled: true } }, 'ServiceMonitor', 'endpoints'],
    [{ podMonitor: { enabled: true } }, 'PodMonitor', 'podMetricsEndpoints'],
  ] as const) {
    const rendered = await helm.render({ ...matrix[1]?.values, ...values })
    const monitors = rendered.filter((object) => object.kind === kind)
    // Of both programs.
    expect(monitors).toHaveLength(2)
    for (const { spec } of monitors)
      expect((spec as Record<string, object[]>)[endpoints]).toMatchObject([{ port: 'metrics', honorLabels: true }])
  }
})

test('as a dependency of another chart it takes what Helm hands down, and its pull secrets beside its own', async () => {
  const rendered = await helm.render({
    ...matrix[1]?.values,
    enabled: true,
    global: { imagePullSecrets: [{ name: 'everywhere' }], storageClass: 'fast' },
    imagePullSecrets: [{ name: 'own' }, { name: 'everywhere' }],
  })
  const pods = rendered.filter(({ kind }) => ['Deployment', 'Pod'].includes(kind)) as unknown as {
    spec: Pod & { template?: { spec: Pod } }
  }[]
  expect(pods).toHaveLength(3)
  for (const { spec } of pods) expect((spec.template?.spec ?? spec).imagePullSecrets).toEqual([{ name: 'everywhere' }, { name: 'own' }])
})

test('on OpenShift, users and groups are the namespace’s', async () => {
  const left = { runAsUser: null, runAsGroup: null, fsGroup: null }
  const rendered = await helm.render({ ...matrix[1]?.values, podSecurityContext: left, service: { ...SERVICE, podSecurityContext: left } })
  const pods = rendered.filter(({ kind }) => kind === 'Deployment') as unknown as { spec: { template: { spec: Pod } } }[]
  for (const { spec } of pods)
    expect(spec.template.spec.securityContext).toEqual({
      runAsNonRoot: true,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    })
})

test.each([
  ['a name as long as a label may be', { nameOverride: 'n'.repeat(63) }],
  ['a name of its own', { fullnameOverride: 'f'.repeat(52) }],
  ['a release as long as Helm takes it', {}],
])('%s: each object has a name that it may have', async (_what, values) => {
  const objects = await helm.render({ ...matrix[1]?.values, grafanaDashboard: { enabled: true }, ...values }, 'r'.repeat(53))
  // A Service is a DNS label; of the others, a name may have dots and is longer.
  for (const { kind, metadata } of objects)
    expect(metadata.name, kind).toMatch(kind === 'Service' ? /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/ : /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/)
  for (const { metadata } of objects) for (const value of Object.values(metadata.labels ?? {})) expect(value.length).toBeLessThanOrEqual(63)
})

test('remote signers are a file that the operator reads, with what its connections need', async () => {
  const rendered = await helm.render(matrix[3]?.values ?? {})
  const file = parseRemoteSignersFile(dataOf(find(rendered, 'ConfigMap', /-remote-signers$/), 'remote-signers.yaml'), 'remote-signers.yaml')
  expect(file.map(({ name }) => name)).toEqual(remoteSigners.map(({ name }) => name))
  const { spec } = find(rendered, 'Deployment', /^stakes$/) as unknown as {
    spec: { template: { spec: { volumes: object[]; containers: { env: object[]; volumeMounts: object[] }[] } } }
  }
  const { volumes, containers } = spec.template.spec
  expect(containers[0]?.env).toContainEqual({ name: 'STAKING_REMOTE_SIGNERS', value: '/etc/staking-remote-signers/remote-signers.yaml' })
  expect(containers[0]?.volumeMounts).toContainEqual({
    name: 'remote-signer-1',
    mountPath: '/var/run/staking/remote/openbao-ca',
    readOnly: true,
  })
  expect(volumes).toContainEqual({
    name: 'vault-token',
    projected: {
      defaultMode: expect.any(Number),
      sources: [{ serviceAccountToken: { path: 'token', audience: 'vault', expirationSeconds: 3600 } }],
    },
  })
  const { egress } = find(rendered, 'NetworkPolicy', /^stakes$/).spec as { egress: { ports?: { port: number }[] }[] }
  const ports = (numbers: readonly number[]) => numbers.map((port) => ({ port, protocol: 'TCP' }))
  expect(egress).toContainEqual({ ports: ports([443, 8200, 9000]) })
  // Nothing of it is there for who has none.
  const without = await helm.render(matrix[0]?.values ?? {})
  expect(JSON.stringify(without.filter(({ kind }) => kind !== 'CustomResourceDefinition'))).not.toMatch(/remote|vault/i)
})

test('a network policy has names, the API server, the service and what values name within reach, and the metrics alone be reached', async () => {
  const { spec } = find(await helm.render(matrix[3]?.values ?? {}), 'NetworkPolicy', /^stakes$/)
  const tcp = (port: number) => ({ port, protocol: 'TCP' })
  expect(spec).toEqual({
    podSelector: { matchLabels: expect.objectContaining({ 'app.kubernetes.io/component': 'operator' }) },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ ports: [{ port: 'metrics' }], from: [{ namespaceSelector: {} }] }],
    egress: [
      { ports: [{ port: 53, protocol: 'UDP' }, tcp(53)] },
      { ports: [tcp(443), tcp(6443)] },
      { ports: [tcp(8080)], to: [{ podSelector: { matchLabels: expect.objectContaining({ 'app.kubernetes.io/component': 'service' }) } }] },
      { ports: [tcp(443)] },
      { ports: [tcp(443), tcp(8200), tcp(9000)] },
      { to: [{ ipBlock: { cidr: '192.0.2.0/24' } }] },
    ],
  })
})

test('a network policy lets it reach a staking API wherever that is', async () => {
  const portsOf = async (url: string) => {
    const rendered = await helm.render({ ...matrix[0]?.values, stakingApi: { url }, networkPolicy: { enabled: true } })
    const { egress } = find(rendered, 'NetworkPolicy', /./).spec as { egress: { ports: { port: number }[]; to?: object[] }[] }
    return egress.flatMap(({ ports, to }) => (to === undefined ? ports.map(({ port }) => port) : []))
  }
  expect(await portsOf('https://staking.example')).toEqual([53, 53, 443, 6443, 443])
  expect(await portsOf('http://api.staking.svc:9000/base')).toEqual([53, 53, 443, 6443, 9000])
  expect(await portsOf('http://api.staking.svc')).toEqual([53, 53, 443, 6443, 80])
})

test('what looks like a number is a name all the same', async () => {
  const values = {
    ...matrix[3]?.values,
    fullnameOverride: '123',
    nameOverride: '45',
    networksSecret: { name: '1', key: '2' },
    stakingApi: { url: 'https://staking.example', apiKeySecret: { name: '3', key: '4' }, caSecret: { name: '5', key: '6' } },
    signerSecrets: ['7'],
    leaderElection: { leaseName: '8' },
    priorityClassName: '9',
    service: {
      ...SERVICE,
      config: { networks: [] },
      seedSecret: { name: '10', key: '11' },
      database: { storage: { storageClassName: '12' } },
    },
    networks: (matrix[0]?.values as { readonly networks: object[] } | undefined)?.networks,
  }
  const { stdout } = await helm.run(['template', '678', chart, '--namespace', '90', '--values', helm.valuesFile(values)])
  const names = /^(name|namespace|secretName|claimName|serviceAccountName|priorityClassName|storageClassName|key|app\.kubernetes\.io\/.*)$/
  const seen: string[] = []
  const look = (node: unknown, at: string): void => {
    if (typeof node !== 'object' || node === null) return
    for (const [field, child] of Object.entries(node)) {
      const here = `${at}.${field}`
      if (names.test(field) || /resourceNames\.\d+$/.test(here)) {
        if (typeof child !== 'object') seen.push(String(child))
        expect(['string', 'object'], here).toContain(typeof child)
      }
      look(child, here)
    }
  }
  for (const document of parseAllDocuments(stdout)) {
    const object = document.toJS() as Rendered | null
    if (object !== null && object.kind !== 'CustomResourceDefinition') look(object, object.kind)
  }
  expect(seen).toEqual(expect.arrayContaining(['123', '45', '678', '90', '1', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12']))
})

test('every network whose constants are known needs none, and every other one does', async () => {
  const given = { rpcUrls: ['https://node.example'] }
  const networks = [
    ...Object.keys(knownNetworks).map((name) => ({ ...given, name, chain: 'Ethereum' })),
    ...Object.keys(knownGenesisHashes).map((name) => ({ ...given, name, chain: 'Solana' })),
  ]
  expect(await helm.refusal({ ...matrix[0]?.values, networks })).toBe('')
  const own = { ...given, chainId: 1, depositContractAddress: `0x${'12'.repeat(20)}`, genesisForkVersion: '0x10000000' }
  expect(await helm.refusal({ ...matrix[0]?.values, networks: [{ ...own, name: 'own', chain: 'Ethereum' }] })).toBe('')
  expect(await helm.refusal({ ...matrix[0]?.values, networks: [{ ...given, name: 'own', chain: 'Solana', genesisHash: 'x' }] })).toBe('')
})

test("what stands in the service's own configuration goes before the networks of the chart", async () => {
  const rendered = await helm.render(matrix[3]?.values ?? {})
  const service = parseServiceConfig(dataOf(find(rendered, 'Secret', /-service$/), 'service.yaml'), 'service.yaml')
  expect(service).toMatchObject({ logLevel: 'debug', database: { urlFile: '/var/run/staking/database/url' } })
  const tuned = await helm.render({ ...matrix[1]?.values, service: { ...SERVICE, config: { database: { poolSize: 30 } } } })
  expect(dataOf(find(tuned, 'Secret', /-service$/), 'service.yaml')).toMatch(
    /database:\n\s+dataDir: \/var\/lib\/staking-service\n\s+poolSize: 30\n/,
  )
  // A URL may hold a key.
  for (const object of rendered.filter(({ kind, metadata }) => kind === 'ConfigMap' && !metadata.name.endsWith('-networks')))
    expect(JSON.stringify(object)).not.toContain('rpcUrls')
})

test('no role that tenants get has anything of the log, of signers, or of a status', async () => {
  const rendered = await helm.render(matrix[0]?.values ?? {})
  const aggregated = rendered.filter(({ metadata }) =>
    Object.keys(metadata.labels ?? {}).some((label) => label.startsWith('rbac.authorization.k8s.io/aggregate-to-')),
  )
  expect(aggregated).toHaveLength(2)
  const resources = aggregated.flatMap(({ rules }) => (rules as { resources: string[] }[]).flatMap((rule) => rule.resources))
  expect([...new Set(resources)].toSorted()).toEqual([
    'ethereumstakes',
    'solanastakeauthorizations',
    'solanastakes',
    'stakingapprovals',
    'validatorexits',
    'validatorwithdrawals',
  ])
  const rules = aggregated.flatMap((role) => role.rules as { resources: string[]; verbs: string[] }[])
  expect(rules.flatMap(({ verbs }) => verbs)).not.toContain('approve')
  expect(rules.find((rule) => rule.resources.includes('stakingapprovals'))?.verbs).toEqual(['get', 'list', 'watch'])
})

test('no role both asks and approves', async () => {
  const roles = (await helm.render(matrix[0]?.values ?? {})).filter(({ kind }) => kind === 'ClusterRole')
  const rulesOf = (role: Rendered) => (role.rules ?? []) as { resources: string[]; verbs: string[] }[]
  const approving = roles.filter((role) => rulesOf(role).some(({ verbs }) => verbs.includes('approve')))
  expect(approving.map(({ metadata }) => metadata.name)).toEqual(['staking-operator-approver'])
  for (const { resources, verbs } of approving.flatMap(rulesOf))
    if (!resources.includes('stakingapprovals')) expect(verbs).toEqual(['get', 'list', 'watch', 'approve'])
})

test('definitions are kept when the release goes, unless that is asked for', async () => {
  const policies = async (values: object) =>
    (await helm.render({ ...matrix[0]?.values, ...values }))
      .filter(({ kind }) => kind === 'CustomResourceDefinition')
      .map(({ metadata }) => metadata.annotations?.['helm.sh/resource-policy'])
  expect(new Set(await policies({}))).toEqual(new Set(['keep']))
  expect(await policies({ crds: { keep: false, protect: false } })).toHaveLength(9)
  expect(new Set(await policies({ crds: { keep: false, protect: false } }))).toEqual(new Set([undefined]))
  expect(await policies({ crds: { enabled: false } })).toEqual([])
  // What Helm has not installed, it does not delete.
  expect(await policies({ crds: { enabled: false, keep: false } })).toEqual([])
})

describe('operator and service have an image each', () => {
  const imagesOf = async (values: object) => {
    const deployments = (await helm.render(values)).filter(({ kind }) => kind === 'Deployment')
    return deployments.map((one) => (one as unknown as { spec: { template: { spec: Pod } } }).spec.template.spec.containers[0])
  }

  test('by name and the version of the chart', async () => {
    const images = await imagesOf(matrix[1]?.values ?? {})
    expect(images).toMatchObject([
      { args: expect.arrayContaining(['operator']), image: 'staking-operator:0.1.0', imagePullPolicy: 'IfNotPresent' },
      { args: expect.arrayContaining(['service']), image: 'staking-service:0.1.0', imagePullPolicy: 'IfNotPresent' },
    ])
  })

  test('by digest, which is not looked up by its tag', async () => {
    const images = await imagesOf(matrix[3]?.values ?? {})
    expect(images).toMatchObject([
      { image: `registry.example/staking-operator@sha256:${'ab'.repeat(32)}`, imagePullPolicy: 'IfNotPresent' },
      { image: `registry.example/staking-service@sha256:${'cd'.repeat(32)}`, imagePullPolicy: 'Always' },
    ])
  })
})

describe('refused with a word, before anything is installed', () => {
  const fine = matrix[0]?.values as { readonly networks: object[] }
  test.each<{ what: string; values: object; says: RegExp }>([
    {
      what: 'a label that selectors go by',
      values: { ...fine, podLabels: { 'app.kubernetes.io/name': 'mine' } },
      says: /podLabels has app\.kubernetes\.io\/name, which the chart sets itself/,
    },
    {
      what: 'such a label for everything',
      values: { ...fine, commonLabels: { 'app.kubernetes.io/instance': 'mine' } },
      says: /commonLabels has app\.kubernetes\.io\/instance/,
    },
    {
      what: 'one label twice',
      values: { ...fine, commonLabels: { team: 'a' }, service: { podLabels: { team: 'b' } } },
      says: /service\.podLabels and commonLabels both have team/,
    },
    { what: 'a name that is too long for a label', values: { ...fine, nameOverride: 'a'.repeat(64) }, says: /'\/nameOverride': maxLength/ },
    { what: 'a name that no object has', values: { ...fine, fullnameOverride: 'Staking' }, says: /'\/fullnameOverride'/ },
    {
      what: 'a variable that is a number',
      values: { ...fine, extraEnv: [{ name: 'UV_THREADPOOL_SIZE', value: 8 }] },
      says: /'\/extraEnv\/0\/value': got number, want string/,
    },
    {
      what: 'a typo in a network',
      values: { ...fine, networks: [{ ...fine.networks[0], beaconApiUrl: ['https://beacon.example'] }] },
      says: /'\/networks\/0': additional properties 'beaconApiUrl' not allowed/,
    },
    {
      what: 'a database of the service that the chart would not use',
      values: { ...fine, service: { ...SERVICE, config: { database: { urlFile: '/a' } } } },
      says: /service\.config\.database has urlFile, which the chart sets itself: name a PostgreSQL database in service\.database\.urlSecret/,
    },
    {
      what: 'a port of the service that the chart would not use',
      values: { ...fine, service: { ...SERVICE, config: { listen: { port: 9 } } } },
      says: /service\.config has listen, which the chart sets itself\. Its ports are 8080 and 8081/,
    },
    {
      what: 'a service without a network',
      values: { networksSecret: { name: 'a' }, service: SERVICE },
      says: /neither networks nor service\.config\.networks names a network/,
    },
    {
      what: 'a service with two certificates',
      values: { ...fine, service: { ...SERVICE, tls: { secretName: 'a' }, config: { tls: { certFile: '/a', keyFile: '/b' } } } },
      says: /service\.tls\.secretName and service\.config\.tls: each names the certificate/,
    },
    {
      what: "the operator's rights for every pod of the namespace",
      values: { ...fine, serviceAccount: { create: false } },
      says: /every pod of the namespace would have the operator's rights/,
    },
    { what: 'nothing set', values: {}, says: /networks is empty: name the networks/ },
    { what: 'no staking API', values: { networks: fine.networks }, says: /stakingApi\.url is empty: set it, or run the service/ },
    {
      what: 'a remote signer twice',
      values: { ...fine, remoteSigners: [remoteSigners[1], remoteSigners[1]] },
      says: /remoteSigners has cloud, which is there twice/,
    },
    {
      what: 'a remote signer that is a mounted key too',
      values: { ...fine, signers: [{ keyName: 'cloud', secretName: 'a' }], remoteSigners: [remoteSigners[1]] },
      says: /remoteSigners has cloud, which is there twice/,
    },
    {
      what: 'a remote signer of two kinds',
      values: { ...fine, remoteSigners: [{ ...remoteSigners[0], ...remoteSigners[1] }] },
      says: /must have one of web3signer, awsKms and transit/,
    },
    { what: 'a typo at the top', values: { ...fine, replicas: 2 }, says: /additional properties 'replicas' not allowed/ },
    {
      what: 'a typo below',
      values: { ...fine, stakingApi: { uri: 'https://a.example' } },
      says: /at '\/stakingApi': additional properties 'uri' not allowed/,
    },
    { what: 'a number as a text', values: { ...fine, replicaCount: 'two' }, says: /at '\/replicaCount': got string, want integer/ },
    {
      what: 'a network without nodes',
      values: { ...fine, networks: [{ name: 'hoodi', chain: 'Ethereum' }] },
      says: /missing property 'rpcUrls'/,
    },
    {
      what: 'a chain that is none',
      values: { ...fine, networks: [{ name: 'a', chain: 'Bitcoin', rpcUrls: ['https://a.example'] }] },
      says: /'\/networks\/0\/chain'/,
    },
    {
      what: 'a folder of a key that leaves the folder of keys',
      values: { ...fine, signers: [{ keyName: '../etc', secretName: 'a' }] },
      says: /'\/signers\/0\/keyName'/,
    },
    {
      what: 'one folder for two keys',
      values: {
        ...fine,
        signers: [
          { keyName: 'a', secretName: 'b' },
          { keyName: 'a', secretName: 'c' },
        ],
      },
      says: /signers has keyName a twice/,
    },
    { what: 'an image digest that is none', values: { ...fine, image: { digest: 'latest' } }, says: /'\/image\/digest'/ },
    {
      what: 'a digest of the service that is none',
      values: { ...fine, service: { image: { digest: 'sha256:1' } } },
      says: /'\/service\/image\/digest'/,
    },
    {
      what: 'an embedded database for two',
      values: { ...fine, service: { enabled: true, replicaCount: 2 } },
      says: /the embedded database serves one replica\. Set service\.replicaCount=1/,
    },
    {
      what: 'a node without http',
      values: { ...fine, networks: [{ name: 'hoodi', chain: 'Ethereum', rpcUrls: ['rpc.example:8545'] }] },
      says: /'\/networks\/0\/rpcUrls\/0'/,
    },
    {
      what: 'a Beacon API without http',
      values: { ...fine, networks: [{ name: 'a', chain: 'Ethereum', rpcUrls: ['https://a.example'], beaconApiUrls: ['beacon'] }] },
      says: /'\/networks\/0\/beaconApiUrls\/0'/,
    },
    { what: 'a network twice', values: { ...fine, networks: [...fine.networks, ...fine.networks] }, says: /networks has hoodi twice/ },
    { what: 'a staking API without http', values: { ...fine, stakingApi: { url: 'staking.example' } }, says: /'\/stakingApi\/url'/ },
    {
      what: 'an image with its tag in the repository',
      values: { ...fine, image: { repository: 'registry.example/staking-operator:1.2' } },
      says: /'\/image\/repository'/,
    },
    {
      what: 'a lease in words',
      values: { ...fine, leaderElection: { leaseDuration: '15 seconds' } },
      says: /'\/leaderElection\/leaseDuration'/,
    },
    {
      what: 'a lease that ends before its renewal',
      values: { ...fine, leaderElection: { leaseDuration: '10s', renewDeadline: '0.25m' } },
      says: /leaseDuration \(10s\) must be longer than renewDeadline \(0\.25m\)/,
    },
    {
      what: 'a lease that is tried again too late',
      values: { ...fine, leaderElection: { retryPeriod: '10000ms' } },
      says: /renewDeadline \(10s\), and that longer than retryPeriod \(10000ms\)/,
    },
    { what: 'a label that is none', values: { ...fine, commonLabels: { team: 'platform team' } }, says: /'\/commonLabels\/team'/ },
    {
      what: 'an interval that Prometheus does not read',
      values: { ...fine, serviceMonitor: { enabled: true, interval: '30 s' } },
      says: /'\/serviceMonitor\/interval'/,
    },
    {
      what: 'a retention in days',
      values: { ...fine, transactionRetention: '30d' },
      says: /'\/transactionRetention'/,
    },
    {
      what: 'definitions that go with the release, and a policy that refuses just that',
      values: { ...fine, crds: { keep: false } },
      says: /crds\.keep=false and crds\.protect=true: .*Set crds\.protect=false as well/,
    },
    {
      what: 'a network whose name is mistyped',
      values: { ...fine, networks: [{ ...fine.networks[0], name: 'hodi' }] },
      says: /networks: hodi is none of mainnet, hoodi and sepolia, .*give it chainId, depositContractAddress and genesisForkVersion/,
    },
    {
      what: 'a Solana network whose name is mistyped',
      values: { ...fine, networks: [{ name: 'mainnet', chain: 'Solana', rpcUrls: ['https://solana.example'] }] },
      says: /networks: mainnet is none of mainnet-beta, testnet and devnet, .*give it genesisHash/,
    },
    {
      what: 'a network that no operator takes by its name',
      values: { ...fine, networks: [{ ...fine.networks[0], name: 'Hoodi' }] },
      says: /'\/networks\/0\/name'/,
    },
    {
      what: 'a lease that nobody could make',
      values: { ...fine, leaderElection: { leaseName: 'Staking_Operator' } },
      says: /'\/leaderElection\/leaseName'/,
    },
    {
      what: 'two monitors',
      values: { ...fine, serviceMonitor: { enabled: true }, podMonitor: { enabled: true } },
      says: /Choose one/,
    },
  ])('$what', async ({ values, says }) => {
    expect(await helm.refusal(values)).toMatch(says)
  })
})

describe('values that a page shows', () => {
  const known = Object.keys(parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as object)
  type Values = Readonly<Record<string, unknown>> & { readonly service?: object; readonly stakingApi?: object }
  const filled = (text: string): string =>
    text.replaceAll(/\b(RPC-URL-\d|BEACON-API-URL)\b/g, 'https://node.example').replaceAll('REGISTRY', 'registry.example')
  // The networks file has names in common with the values, and is none.
  const shown = sitePages
    .filter((page) => page !== 'docs/reference/configuration.md')
    .flatMap((page) =>
      blocksOf(readFileSync(join(repository, page), 'utf8'))
        .filter(({ language }) => language === 'yaml')
        .flatMap(({ heading, text }) => {
          const [first, ...more] = parseAllDocuments(filled(text))
          const values = first?.toJS() as Values
          return more.length === 0 && Object.keys(values).every((key) => known.includes(key)) ? [{ page, heading, values }] : []
        }),
    )

  test('are found', () => {
    expect(shown.length).toBeGreaterThan(8)
  })

  test.each(shown)('$page, $heading: the chart takes them', async ({ values }) => {
    const { service = {}, stakingApi = {} } = values
    const url = 'enabled' in service ? {} : { url: 'https://staking.example' }
    const rest = { networks: [{ name: 'hoodi', chain: 'Ethereum', rpcUrls: ['https://rpc-1.example', 'https://rpc-2.example'] }] }
    await helm.render({ ...rest, ...values, stakingApi: { ...url, ...stakingApi }, service: { replicaCount: 1, ...service } })
  })
})
