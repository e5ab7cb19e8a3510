import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createKubeApi, type KubeApi } from '../../../src/operator/kube/api.ts'
import { isAlreadyExists, isConflict, isForbidden, isInvalid, isNotFound, isUnauthorized } from '../../../src/operator/kube/errors.ts'
import { createEventRecorder, events, type KubeEvent } from '../../../src/operator/kube/events.ts'
import { changeMetadata, isBeingDeleted } from '../../../src/operator/kube/finalizers.ts'
import { parseKubeconfig } from '../../../src/operator/kube/kubeconfig.ts'
import { leases } from '../../../src/operator/kube/lease.ts'
import type { ResourceClient } from '../../../src/operator/kube/resource-client.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { adminApi, portOf, until } from './apis.ts'
import { installWidgets, type Widget, widget, widgetClient } from './widgets.ts'

let cluster: ControlPlane
let api: KubeApi
let client: ResourceClient<Widget>
beforeAll(async () => {
  cluster = await startControlPlane()
  await installWidgets(cluster)
  api = adminApi(cluster)
  client = widgetClient(api)
})
afterAll(async () => {
  await api?.close()
  await cluster?.stop()
})

const signal = new AbortController().signal
const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail('it did not fail'),
    (error: unknown) => error,
  )
let count = 0
let name: string
beforeEach(() => {
  name = `widget-${++count}`
})
const ref = () => ({ namespace: 'default', name })

describe('writes', () => {
  test('of two who patch from the same version, one is refused', async () => {
    const { metadata } = await client.create(widget(name), signal)
    const options = { resourceVersion: metadata.resourceVersion, subresource: 'status' as const, fieldManager: 'test' }
    const first = await client.mergePatch(ref(), { status: { step: 1 } }, options, signal)
    expect(first.status?.step).toBe(1)
    const refused = await failure(client.mergePatch(ref(), { status: { step: 2 } }, options, signal))
    expect(isConflict(refused)).toBe(true)
    expect((await client.get(ref(), signal)).status?.step).toBe(1)
  })

  test('a patch computed from a deleted object does not touch the one made anew under its name', async () => {
    const { metadata } = await client.create(widget(name), signal)
    await client.delete(ref(), {}, signal)
    await client.create(widget(name), signal)
    const refused = await failure(
      client.mergePatch(ref(), { status: { step: 9 } }, { resourceVersion: metadata.resourceVersion, subresource: 'status' }, signal),
    )
    expect(isConflict(refused)).toBe(true)
  })

  test('a patch of the status changes nothing else', async () => {
    const { metadata } = await client.create(widget(name, { size: 1 }), signal)
    const patched = await client.mergePatch(
      ref(),
      { spec: { size: 2 }, status: { step: 1 } },
      { resourceVersion: metadata.resourceVersion, subresource: 'status' },
      signal,
    )
    expect([patched.spec?.size, patched.status?.step]).toEqual([1, 1])
  })

  test('a delete with the UID of another object is refused', async () => {
    await client.create(widget(name), signal)
    const refused = await failure(client.delete(ref(), { preconditions: { uid: 'another' } }, signal))
    expect(isConflict(refused)).toBe(true)
  })

  test('what exists, is missing or is invalid is told apart', async () => {
    expect(isNotFound(await failure(client.get(ref(), signal)))).toBe(true)
    await client.create(widget(name), signal)
    expect(isAlreadyExists(await failure(client.create(widget(name), signal)))).toBe(true)
    name = `${name}-other`
    expect(isInvalid(await failure(client.create({ ...widget(name), spec: { size: 'large' as unknown as number } }, signal)))).toBe(true)
  })
})

describe('finalizers and annotations', () => {
  test('a finalizer and an annotation are set in one write and hold the object until the finalizer goes', async () => {
    const created = await client.create(widget(name), signal)
    const held = await changeMetadata(
      client,
      created,
      { addFinalizer: 'test.kube-runtime.dev/holds', annotations: { 'test.kube-runtime.dev/origin': 'here' } },
      signal,
    )
    expect(held?.metadata).toMatchObject({
      finalizers: ['test.kube-runtime.dev/holds'],
      annotations: { 'test.kube-runtime.dev/origin': 'here' },
    })
    await client.delete(ref(), {}, signal)
    const dying = await client.get(ref(), signal)
    expect(isBeingDeleted(dying)).toBe(true)
    await changeMetadata(client, dying, { removeFinalizer: 'test.kube-runtime.dev/holds' }, signal)
    expect(isNotFound(await failure(client.get(ref(), signal)))).toBe(true)
    expect(
      await changeMetadata(client, { ...dying, metadata: { ...dying.metadata, finalizers: ['a'] } }, { removeFinalizer: 'a' }, signal),
    ).toBeUndefined()
  })

  test("another's finalizer, put there meanwhile, is not lost", async () => {
    const created = await client.create(widget(name), signal)
    await changeMetadata(client, created, { addFinalizer: 'test.kube-runtime.dev/theirs' }, signal)
    const refused = await failure(changeMetadata(client, created, { addFinalizer: 'test.kube-runtime.dev/ours' }, signal))
    expect(isConflict(refused)).toBe(true)
    const fresh = await client.get(ref(), signal)
    const both = await changeMetadata(client, fresh, { addFinalizer: 'test.kube-runtime.dev/ours' }, signal)
    expect(both?.metadata.finalizers).toEqual(['test.kube-runtime.dev/theirs', 'test.kube-runtime.dev/ours'])
  })
})

test('items of a list of a built-in kind say what they are', async () => {
  const namespaces = api.resource({ group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false })
  const { items } = await namespaces.list({ limit: 1 }, signal)
  expect(items).toEqual([expect.objectContaining({ apiVersion: 'v1', kind: 'Namespace' })])
})

describe('events', () => {
  test('repeats are one event with a count, for people to see', async () => {
    const about = await client.create(widget(name), signal)
    const stopping = new AbortController()
    const recorder = createEventRecorder({
      client: api.resource<KubeEvent>(events),
      reportingController: 'test.kube-runtime.dev/controller',
      reportingInstance: 'pod-0',
      clock: systemClock,
      seriesMs: 200,
    })
    const running = recorder.run(stopping.signal)
    const text = { type: 'Warning', reason: 'Refused', action: 'Sign', note: 'é'.repeat(2000) } as const
    const stored = async (): Promise<readonly KubeEvent[]> =>
      (await api.resource<KubeEvent>(events).list({ namespace: 'default' }, signal)).items.filter(
        ({ regarding }) => regarding?.uid === about.metadata.uid,
      )
    for (let time = 0; time < 5; time++) recorder.event(about, text)
    await until('it is written', async () => (await stored()).length === 1)
    for (let time = 0; time < 7; time++) recorder.event(about, text)
    await until('the repeats are counted', async () => (await stored())[0]?.series?.count === 12)
    recorder.event(about, { ...text, type: 'Normal', note: 'all is well' })
    recorder.event(about, text)
    stopping.abort()
    await running
    expect(
      (await stored()).map(({ series, note }) => [series?.count, Buffer.byteLength(note ?? '')]).sort(([a = 0], [b = 0]) => b - a),
    ).toEqual([
      [13, 1023],
      [undefined, 11],
    ])
    expect(await cluster.kubectlOk(['describe', 'widget', name])).toMatch(/Warning\s+Refused/)
  })

  test('about a cluster-scoped object are found in the namespace default', async () => {
    const crds = api.resource({
      group: 'apiextensions.k8s.io',
      version: 'v1',
      plural: 'customresourcedefinitions',
      kind: 'CustomResourceDefinition',
      namespaced: false,
    })
    const crd = await crds.get({ name: 'widgets.test.kube-runtime.dev' }, signal)
    const recorder = createEventRecorder({
      client: api.resource<KubeEvent>(events),
      reportingController: 'test.kube-runtime.dev/c',
      reportingInstance: 'p',
      clock: systemClock,
    })
    recorder.event(crd, { type: 'Normal', reason: 'Seen', action: 'Look', note: 'here it is' })
    await recorder.run(AbortSignal.abort())
    const { items } = await api.resource<KubeEvent>(events).list({ namespace: 'default' }, signal)
    expect(items.filter(({ reason }) => reason === 'Seen')).toHaveLength(1)
  })
})

describe("a pod's own account", () => {
  /** The files that the kubelet mounts. */
  function mount() {
    const dir = mkdtempSync(join(tmpdir(), 'kube-pod-'))
    const folder = join(dir, 'var/run/secrets/kubernetes.io/serviceaccount')
    mkdirSync(folder, { recursive: true })
    const write = (file: 'token' | 'ca.crt' | 'namespace', text: string): void => writeFileSync(join(folder, file), text)
    write('namespace', 'default')
    return { dir, write, remove: () => rmSync(dir, { recursive: true }) }
  }
  const withPodEnvironment = async (run: () => Promise<void>): Promise<void> => {
    process.env.KUBERNETES_SERVICE_HOST = '127.0.0.1'
    process.env.KUBERNETES_SERVICE_PORT = String(portOf(cluster))
    try {
      await run()
    } finally {
      delete process.env.KUBERNETES_SERVICE_HOST
      delete process.env.KUBERNETES_SERVICE_PORT
    }
  }

  test('is used from its mounted files: with its rights and no more, with each new token and CA', async () => {
    await cluster.apply(`
apiVersion: v1
kind: ServiceAccount
metadata: { name: reader, namespace: default }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: widget-reader }
rules: [{ apiGroups: [test.kube-runtime.dev], resources: [widgets], verbs: [get, list] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: widget-reader }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: widget-reader }
subjects: [{ kind: ServiceAccount, name: reader, namespace: default }]
`)
    const token = await cluster.tokenFor({ namespace: 'default', name: 'reader' })
    const pod = mount()
    pod.write('token', 'an expired token')
    pod.write('ca.crt', cluster.caPem)
    await withPodEnvironment(async () => {
      const podApi = createKubeApi({ inCluster: true, pathPrefix: pod.dir, clock: systemClock, userAgent: 'test', credentialRefreshMs: 50 })
      const readable = widgetClient(podApi)
      try {
        expect(isUnauthorized(await failure(readable.list({}, signal)))).toBe(true)
        pod.write('token', `${token}\n`)
        // The token is read again, and its rights are heard of, a moment later.
        const listed = async () => (await readable.list({}, signal).catch(() => undefined))?.resourceVersion
        await expect.poll(listed, { timeout: 60_000 }).toMatch(/^\d+$/)
        expect(isForbidden(await failure(readable.create(widget(name), signal)))).toBe(true)
        expect(isForbidden(await failure(podApi.resource(leases).list({}, signal)))).toBe(true)
        // Another CA: what it did not sign is not spoken to any more; with the right one back, all is well again.
        pod.write('ca.crt', OTHER_CA)
        await until('the new CA counts', () =>
          readable.list({}, signal).then(
            () => false,
            () => true,
          ),
        )
        pod.write('ca.crt', cluster.caPem)
        await until('the right CA counts again', () =>
          readable.list({}, signal).then(
            () => true,
            () => false,
          ),
        )
      } finally {
        await podApi.close()
        pod.remove()
      }
    })
  })
})

describe('an exec plugin', () => {
  /** The administrator, by what a program prints. */
  function apiWithPlugin(program: string): KubeApi {
    const admin = parseKubeconfig(cluster.adminKubeconfig)
    const [{ name: user } = { name: '' }] = admin.users
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: ['-e', program] }
    const kubeConfig = { ...admin, users: [{ name: user, exec }] }
    return createKubeApi({ kubeConfig, clock: systemClock, userAgent: 'test', credentialRefreshMs: 1 })
  }

  test('is asked once, its token used until it is refused, and then asked again', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'kube-plugin-'))
    const runs = join(dir, 'runs')
    const tokenFile = join(dir, 'token')
    const [admin] = parseKubeconfig(cluster.adminKubeconfig).users
    const api = apiWithPlugin(
      `const fs=require('fs');fs.appendFileSync('${runs}','x');console.log(JSON.stringify({status:{token:fs.readFileSync('${tokenFile}','utf8')}}))`,
    )
    try {
      writeFileSync(tokenFile, 'not-valid-yet')
      expect(isUnauthorized(await failure(widgetClient(api).list({}, signal)))).toBe(true)
      writeFileSync(tokenFile, admin?.token ?? '')
      for (let time = 0; time < 3; time++) {
        await widgetClient(api).list({}, signal)
        await systemClock.sleep(5, signal)
      }
      // First, again after the first refusal, and again after the second.
      expect(readFileSync(runs, 'utf8')).toBe('xxx')
    } finally {
      await api.close()
      rmSync(dir, { recursive: true })
    }
  })

  test('that fails is named, and what it printed is not passed on', async () => {
    const api = apiWithPlugin('console.error("password=hunter2");process.exit(1)')
    const error = await failure(widgetClient(api).list({}, signal))
    expect(String(error)).toMatch(/^KubeTransportError: the credentials of user ".+" could not be loaded$/)
    await api.close()
  })
})

/** A certificate that signed nothing here (self-signed, for this test). */
const OTHER_CA = `-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIUaqL7hMx6nqZPIRlnfnScziiv6OEwCgYIKoZIzj0EAwIw
EzERMA8GA1UEAwwIb3RoZXItY2EwIBcNMjYxMTI4MDEwMDQ1WhgPMjEyNjExMDQw
MTAwNDVaMBMxETAPBgNVBAMMCG90aGVyLWNhMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAE111D/PIe7tHg+pdvPSKV0ytvCw3WWD9tiPnrIGJrtLokPHIYyjPhJPQ3
Ub08vQqeRJ6Zpj/KjJuR58y02xmuwqNTMFEwHQYDVR0OBBYEFAF2ibZKyOlvIpJ/
vEtXNCSunLfEMB8GA1UdIwQYMBaAFAF2ibZKyOlvIpJ/vEtXNCSunLfEMA8GA1Ud
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgPHDipcmxBH4qcXJ8dGs5aiMq
zaraRYtb0Toc1LElw30CIQDpyHXFaLUjfGEdTOpplz/Ty8cGcNfEHSSG6cZO671a
7g==
-----END CERTIFICATE-----
`
