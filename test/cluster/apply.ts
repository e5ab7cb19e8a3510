import { setTimeout as delay } from 'node:timers/promises'
import { type Condition, isTrue } from '../../src/resources/conditions.ts'
import { REQUESTED_BY_ANNOTATION } from '../../src/resources/meta.ts'
import type { ApiResponse } from './api-request.ts'
import type { ControlPlane } from './control-plane.ts'

type Json = Readonly<Record<string, unknown>>
interface Served {
  readonly name: string
  readonly kind: string
  readonly namespaced: boolean
}

/**
 * Applies objects one after another, as `kubectl apply --server-side --force-conflicts` does: fields that were applied before and are not given any more go. By
 * itself and over one connection: each `kubectl apply` is a process that fetches the schemas of all that is served, which the API server makes anew with each CRD.
 * @throws with what the API server said to the first that it refused.
 */
export async function applyObjects({ request }: Pick<ControlPlane, 'request'>, objects: readonly Json[]): Promise<void> {
  const served = new Map<string, readonly Served[]>()
  const resourceOf = async (apiVersion: string, kind: string): Promise<Served | undefined> => {
    if (!served.has(apiVersion)) {
      const { status, body } = await request({ path: base(apiVersion) })
      if (status === 200) served.set(apiVersion, (body as { resources: readonly Served[] }).resources)
    }
    return served.get(apiVersion)?.find((one) => one.kind === kind && !one.name.includes('/'))
  }
  for (const object of objects) {
    const { apiVersion, kind, metadata } = object as { apiVersion: string; kind: string; metadata: { name: string; namespace?: string } }
    const apply = async (): Promise<ApiResponse | undefined> => {
      const resource = await resourceOf(apiVersion, kind)
      if (resource === undefined) return undefined
      const space = resource.namespaced ? `/namespaces/${metadata.namespace ?? 'default'}` : ''
      return request({
        method: 'PATCH',
        path: `${base(apiVersion)}${space}/${resource.name}/${metadata.name}?fieldManager=tests&force=true&fieldValidation=Strict`,
        contentType: 'application/apply-patch+yaml',
        body: object,
        timeoutMs: 60_000,
      })
    }
    // What a definition defines is served a moment after it is established.
    let answer = await apply()
    for (let more = 300; isNotServed(answer) && more > 0; more--) {
      served.delete(apiVersion)
      await delay(100)
      answer = await apply()
    }
    if (answer?.status !== 200 && answer?.status !== 201)
      throw new Error(`${kind} ${metadata.name} was not applied: ${answer === undefined ? 'it is not served' : said(answer)}`)
  }
}

const base = (apiVersion: string): string => (apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`)

/** What MutatingAdmissionPolicy says of a kind that it has not heard of yet. */
const isNotKnownYet = ({ status, body }: ApiResponse): boolean =>
  status === 503 && /delay between when CustomResourceDefinitions are created/.test((body as { message?: string }).message ?? '')
/** A namespace that is not there is a 404 too, with its name. */
const isNotServed = (answer: ApiResponse | undefined): boolean =>
  answer === undefined ||
  isNotKnownYet(answer) ||
  (answer.status === 404 && (answer.body as { details?: { name?: string } }).details?.name === undefined)

const said = ({ status, body }: ApiResponse): string => `HTTP ${status}: ${(body as { message?: string }).message ?? String(body)}`

interface Definition {
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string }
    readonly versions: readonly { readonly name: string; readonly served: boolean }[]
  }
  readonly status?: { readonly conditions?: readonly Condition[] }
}
interface Discovery {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string }
    readonly versions?: readonly { readonly version: string; readonly resources?: readonly { readonly resource: string }[] }[]
  }[]
}
/** What kubectl and the controllers ask for: every group with all its resources in one answer. */
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/**
 * Until every definition of the cluster is served and found: in each of its versions by its path, and by those who ask what there is. The API server
 * writes Established first, and does both a moment later, each by itself. @throws after 90 seconds
 */
export async function untilEstablished({ request }: Pick<ControlPlane, 'request'>): Promise<void> {
  const definitions = async () => (await request({ path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions' })).body
  const isServed = async (group: string, version: string, plural: string): Promise<boolean> =>
    (await request({ path: `/apis/${group}/${version}/${plural}?limit=1` })).status === 200
  for (const deadline = Date.now() + 90_000; ; await delay(50)) {
    const { items = [] } = (await definitions()) as { items?: readonly Definition[] }
    const found = (await request({ path: '/apis', accept: AGGREGATED })).body as Discovery
    const missing: string[] = []
    for (const { metadata, spec, status } of items)
      for (const version of spec.versions.filter(({ served }) => served).map(({ name }) => name)) {
        const versions = found.items?.find((group) => group.metadata?.name === spec.group)?.versions ?? []
        const isFound = versions.find((one) => one.version === version)?.resources?.some(({ resource }) => resource === spec.names.plural)
        if (!isTrue(status?.conditions, 'Established') || isFound !== true || !(await isServed(spec.group, version, spec.names.plural)))
          missing.push(`${metadata.name} ${version}`)
      }
    if (items.length > 0 && missing.length === 0) return
    if (Date.now() > deadline) throw new Error(`not served: ${missing.join(', ') || 'no definition'}`)
  }
}

/**
 * Until the chart's policy writes down who asks, where it is installed: the API server has to hear of it and to reread its schemas, which it does every ten
 * seconds, and in between it answers 503. While a person installs the chart, that passes with the start of the pods. @throws after 90 seconds
 */
export async function untilRecorded({ request }: Pick<ControlPlane, 'request'>): Promise<void> {
  const policies = await request({ path: '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies' })
  const installed = (policies.body as { items?: readonly { metadata: { name: string } }[] }).items ?? []
  if (!installed.some(({ metadata }) => metadata.name === 'requesters.staking.dev')) return
  for (const deadline = Date.now() + 90_000; ; await delay(200)) {
    const answer = await request({
      method: 'PATCH',
      path: '/apis/staking.dev/v1alpha1/namespaces/default/validatorexits/not-there?fieldManager=tests&dryRun=All',
      contentType: 'application/apply-patch+yaml',
      body: {
        apiVersion: 'staking.dev/v1alpha1',
        kind: 'ValidatorExit',
        metadata: { name: 'not-there' },
        spec: { validator: { stakeRef: { name: 'not-there' } }, signer: 'not-there' },
      },
    })
    const { metadata } = answer.body as { metadata?: { annotations?: Readonly<Record<string, string>> } }
    if (metadata?.annotations?.[REQUESTED_BY_ANNOTATION] !== undefined) return
    if (Date.now() > deadline) throw new Error(`nobody is recorded: ${said(answer)}`)
  }
}
