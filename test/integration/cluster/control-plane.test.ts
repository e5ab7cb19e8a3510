import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { birthOf } from '../../cluster/reaper.ts'

let cluster: ControlPlane
beforeAll(async () => {
  cluster = await startControlPlane({ controllerManager: true })
}, 30 * 60_000)
afterAll(async () => {
  await cluster?.stop()
})

const resourceVersion = async (): Promise<string> => {
  const { body } = await cluster.request({ path: '/api/v1/namespaces' })
  return (body as { metadata: { resourceVersion: string } }).metadata.resourceVersion
}

test('the API server answers the real kubectl', async () => {
  expect(await cluster.kubectlOk(['get', 'namespaces', '-o', 'name'])).toContain('namespace/default')
  expect((await cluster.kubectl(['get', 'nonsense'])).code).not.toBe(0)
})

test('it answers no one without a token, and no one with a wrong one', async () => {
  expect((await cluster.request({ path: '/api/v1/namespaces', token: 'wrong' })).status).toBe(401)
})

test('a service account may do what its role says and nothing else', async () => {
  await cluster.apply(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
`)
  const kubeconfig = join(cluster.dir, 'reader.kubeconfig')
  writeFileSync(kubeconfig, await cluster.kubeconfigFor({ namespace: 'default', name: 'reader' }))
  // The API server hears of the rights a moment after they were given.
  await expect.poll(async () => (await cluster.kubectl(['get', 'configmaps'], { kubeconfig })).code, { timeout: 60_000 }).toBe(0)
  const refused = await cluster.kubectl(['get', 'secrets'], { kubeconfig })
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('system:serviceaccount:default:reader')
  expect(refused.stderr).toContain('Forbidden')
})

test('a service account without a role may do nothing, also when impersonated', async () => {
  const asUser = 'system:serviceaccount:default:default'
  expect((await cluster.kubectl(['get', 'pods'], { asUser })).stderr).toContain('Forbidden')
})

test('there is no token for a service account that does not exist', async () => {
  await expect(cluster.kubeconfigFor({ namespace: 'default', name: 'nobody' })).rejects.toThrow(/default\/nobody: HTTP 404/)
})

test('a deleted namespace goes, with what is in it', async () => {
  await cluster.kubectlOk(['create', 'namespace', 'short-lived'])
  await cluster.kubectlOk(['create', 'configmap', 'content', '--namespace=short-lived'])
  await cluster.kubectlOk(['delete', 'namespace', 'short-lived', '--timeout=60s'])
  expect((await cluster.request({ path: '/api/v1/namespaces/short-lived' })).status).toBe(404)
})

test('what depends on a deleted object is collected', async () => {
  await cluster.kubectlOk(['create', 'configmap', 'owner'])
  const uid = await cluster.kubectlOk(['get', 'configmap', 'owner', '-o', 'jsonpath={.metadata.uid}'])
  await cluster.apply(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
  namespace: default
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: ${uid}}]
`)
  await cluster.kubectlOk(['delete', 'configmap', 'owner'])
  const status = async () => (await cluster.request({ path: '/api/v1/namespaces/default/configmaps/owned' })).status
  await expect.poll(status, { timeout: 30_000, interval: 250 }).toBe(404)
})

test('the API server killed and started again is the same cluster on the same port', async () => {
  await cluster.kubectlOk(['create', 'configmap', 'kept', '--from-literal=a=b'])
  const token = await cluster.tokenFor({ namespace: 'default', name: 'default' })
  const before = cluster.pids()
  await cluster.stopApiServer()
  expect(birthOf(before.apiServer)).toBeUndefined()
  await expect(cluster.request({ path: '/readyz' })).rejects.toThrow(/ECONNREFUSED/)
  await cluster.startApiServer()
  expect(cluster.pids().apiServer).not.toBe(before.apiServer)
  expect(cluster.pids().etcd).toBe(before.etcd)
  expect(await cluster.kubectlOk(['get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}'])).toBe('b')
  // Tokens given out earlier stay good: 403 is "known, but not allowed", 401 would be "unknown".
  expect((await cluster.request({ path: '/api/v1/namespaces', token })).status).toBe(403)
})

test('after a compaction, what is older is gone: a list gets 410, a watch an Expired event', async () => {
  const old = await resourceVersion()
  await cluster.kubectlOk(['create', 'namespace', 'newer'])
  expect(await cluster.compactEtcd()).toBeGreaterThan(BigInt(old))
  await cluster.restartApiServer()
  const list = await cluster.request({ path: `/api/v1/namespaces?resourceVersion=${old}&resourceVersionMatch=Exact&limit=1` })
  expect(list.status).toBe(410)
  const watch = await cluster.request({ path: `/api/v1/namespaces?watch=1&resourceVersion=${old}&timeoutSeconds=2` })
  expect(watch.body).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })
})

test('stopping ends every process; a folder that was given is kept, and the cluster in it', async () => {
  const dir = join(cluster.dir, 'second')
  const first = await startControlPlane({ dir })
  await first.kubectlOk(['create', 'configmap', 'kept'])
  const pids = Object.values(first.pids())
  await first.stop()
  expect(pids.map(birthOf)).toEqual(pids.map(() => undefined))
  const again = await startControlPlane({ dir })
  try {
    expect(await again.kubectlOk(['get', 'configmaps', '-o', 'name'])).toContain('configmap/kept')
  } finally {
    await again.stop()
  }
})
