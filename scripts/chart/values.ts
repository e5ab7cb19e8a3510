import { z } from 'zod'
import { ethereumNetworkConfig, networkName } from '../../src/chains/ethereum/networks.ts'
import { solanaNetworkConfig } from '../../src/chains/solana/networks.ts'

/** The chart's values: values.yaml, values.schema.json and the chart's README are made from this. Every field is strict, so that a typo is refused. */

const anyMap = z.record(z.string(), z.any())
const annotations = z.record(z.string(), z.string())
const labels = z.record(
  z.string(),
  z
    .string()
    .max(63)
    .regex(/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/),
)
/** Names of objects are made of it. */
const dnsLabel = (most: number) =>
  z
    .string()
    .max(most)
    .regex(/^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$/)
/** The name of an object that the operator makes itself: nobody would refuse it at the installation. */
const dnsSubdomain = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
/** As the flags of the operator take it. */
const duration = z.string().regex(/^[0-9]+([.][0-9]+)?(ms|s|m|h)$/)
const httpUrl = z.string().regex(/^https?:\/\/\S+$/)
/** Without a tag and a digest, which have values of their own. A registry may have a port. */
const repository = z.string().regex(/^([a-z0-9.-]+(:[0-9]+)?\/)?[a-z0-9._/-]+$/)
const objects = z.array(anyMap)
/** Fields by their names alone: what may stand in them is the program's to say. */
const anyOf = (...shapes: readonly object[]) =>
  Object.fromEntries(shapes.flatMap(Object.keys).map((field) => [field, z.any().optional()] as const))
/** A value that is no text is refused by the API server with words that name no field. */
const environment = z.array(z.looseObject({ name: z.string().min(1), value: z.string().optional() }))
const pullSecrets = z.array(z.strictObject({ name: z.string().min(1).max(253) }))
const name = z.string().max(253)

const image = (standard: string, what: string) =>
  z
    .strictObject({
      repository: repository.default(standard).describe('Where the image is, without a tag.'),
      tag: z.string().default('').describe("Its tag; the chart's appVersion by default."),
      digest: z
        .string()
        .regex(/^(sha256:[0-9a-f]{64})?$/)
        .default('')
        .describe('`sha256:…`: then the tag is not looked at.'),
      pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
    })
    .prefault({})
    .describe(what)

const secretKey = (secret: string, key: string) =>
  z
    .strictObject({
      name: name.default(secret).describe('Name of the Secret.'),
      key: name.default(key).describe('Which of its keys.'),
    })
    .prefault({})

const resources = (cpu: string, memory: string, limit: string) =>
  z
    .strictObject({ requests: anyMap.optional(), limits: anyMap.optional(), claims: objects.optional() })
    .default({ requests: { cpu, memory }, limits: { memory: limit } })

/** What every pod of the chart can be given. */
const pod = {
  deploymentAnnotations: annotations.default({}),
  podAnnotations: annotations.default({}),
  podLabels: labels.default({}),
  nodeSelector: labels.default({}),
  tolerations: objects.default([]),
  affinity: anyMap.default({}),
  topologySpreadConstraints: objects.default([]).describe('Without a labelSelector, the pods of the Deployment are spread.'),
  priorityClassName: z.string().default(''),
  podSecurityContext: anyMap
    .default({
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      fsGroup: 65532,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    })
    .describe('A field is left out by `null`: OpenShift gives users and groups itself (`runAsUser`, `runAsGroup`, `fsGroup`).'),
  securityContext: anyMap
    .default({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } })
    .describe('Of the container.'),
  hostAliases: objects.default([]),
  dnsPolicy: z.string().default(''),
  dnsConfig: anyMap.default({}),
  extraEnv: environment.default([]).describe('More environment variables, such as NODE_USE_ENV_PROXY.'),
  extraVolumes: z.array(z.looseObject({ name: z.string().min(1) })).default([]),
  extraVolumeMounts: z.array(z.looseObject({ name: z.string().min(1), mountPath: z.string().min(1) })).default([]),
}

const disruption = z
  .strictObject({
    enabled: z.boolean().default(true),
    minAvailable: z.union([z.int().min(0), z.string()]).default(1),
  })
  .prefault({})
  .describe('PodDisruptionBudget; only where there is more than one replica.')

const stakingApi = z.strictObject({
  url: z
    .string()
    .regex(/^(https?:\/\/\S+)?$/)
    .default('')
    .describe(
      'http(s) URL of the staking API. Empty: the service of this chart, which is then enabled; https with `service.tls.secretName`, for which `caSecret` is needed.',
    ),
  apiKeySecret: secretKey('staking-api-key', 'key').describe('The Secret that holds its API key.'),
  caSecret: z
    .strictObject({ name: name.default('').describe('Empty: none.'), key: name.default('ca.crt') })
    .prefault({})
    .describe('A Secret with the PEM of the authority that its certificate is from, where that is no public one.'),
  timeoutMs: z.int().min(100).max(120_000).default(15_000),
})

const signer = z.strictObject({
  keyName: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
    .describe('As `spec.keyName` of the StakingSigner has it.'),
  secretName: name.min(1),
  files: z
    .array(z.enum(['privateKey', 'keystore.json', 'password', 'keypair.json']))
    .min(1)
    .default(['privateKey'])
    .describe('Which keys of the Secret.'),
})

const tlsFiles = z
  .strictObject({
    caFile: z.string().optional(),
    certFile: z.string().optional(),
    keyFile: z.string().optional(),
    serverName: z.string().optional(),
  })
  .optional()
const remoteSigner = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
    .describe('As `spec.keyName` of the StakingSigner has it.'),
  timeoutMs: z.int().min(100).max(30_000).optional(),
  web3signer: z.strictObject({ url: z.string(), address: z.string(), tls: tlsFiles }).optional(),
  awsKms: z.strictObject({ keyId: z.string(), region: z.string().optional(), endpoint: z.string().optional(), tls: tlsFiles }).optional(),
  transit: z
    .strictObject({
      url: z.string(),
      key: z.string(),
      address: z.string(),
      mount: z.string().optional(),
      keyVersion: z.int().min(1).optional(),
      namespace: z.string().optional(),
      auth: z.union([
        z.strictObject({ tokenFile: z.string() }),
        z.strictObject({
          kubernetes: z.strictObject({ role: z.string(), mount: z.string().optional(), tokenFile: z.string().optional() }),
        }),
      ]),
      tls: tlsFiles,
    })
    .optional(),
})

const leaderElection = z
  .strictObject({
    leaseName: dnsSubdomain
      .min(1)
      .default('staking-operator')
      .describe('One for a cluster, whatever its releases are called: two leaders would work against each other.'),
    leaseDuration: duration.default('15s').describe('After how long without a renewal another instance may lead: such as `15s`.'),
    renewDeadline: duration.default('10s').describe('Less than that: when the one that leads gives up.'),
    retryPeriod: duration.default('2s').describe('Less than that.'),
  })
  .prefault({})

const monitor = (what: string) =>
  z
    .strictObject({
      enabled: z.boolean().default(false),
      interval: z
        .string()
        .regex(/^([0-9]+(ms|s|m|h))+$/)
        .default('30s'),
      labels: labels.default({}).describe('Labels that your Prometheus selects by.'),
    })
    .prefault({})
    .describe(what)

const service = z
  .strictObject({
    enabled: z.boolean().default(false).describe('Runs the staking service beside the operator. It holds the validators’ keys.'),
    image: image('staking-service', 'The image of the service, built with `--target service`.'),
    replicaCount: z.int().min(1).default(2).describe('More than one needs `database.urlSecret`.'),
    database: z
      .strictObject({
        urlSecret: z
          .strictObject({
            name: name.default('').describe('Empty: an embedded PostgreSQL on a volume, for one replica.'),
            key: name.default('url'),
          })
          .prefault({})
          .describe('The Secret that holds the URL of a PostgreSQL database.'),
        storage: z
          .strictObject({
            size: z.string().default('4Gi'),
            storageClassName: z.string().default(''),
            existingClaim: name.default('').describe('A PersistentVolumeClaim of your own.'),
          })
          .prefault({})
          .describe('The volume of the embedded PostgreSQL.'),
      })
      .prefault({}),
    tls: z
      .strictObject({
        secretName: name
          .default('')
          .describe(
            'A Secret of type kubernetes.io/tls: the API is then served by https alone. One of its names is that of the Service with its namespace, `<full name>-service.<namespace>`; name its authority as `stakingApi.caSecret`. A renewed one counts without a restart. Empty: http.',
          ),
      })
      .prefault({})
      .describe('The certificate of the API (docs/how-to/run-the-service.md). Health and metrics, on a port of their own, stay http.'),
    seedSecret: secretKey('staking-seed', 'seed').describe('The Secret that holds the seed of all validator keys.'),
    config: anyMap
      .default({})
      .describe(
        'Everything else of the service’s configuration, such as `networks` or `database.poolSize`; the chart keeps it in a Secret. Left out, it serves the networks of `networks`.',
      ),
    resources: resources('100m', '256Mi', '1Gi'),
    podDisruptionBudget: disruption,
    ...pod,
  })
  .prefault({})

export const chartValues = z.strictObject({
  global: z
    .looseObject({ imagePullSecrets: pullSecrets.default([]) })
    .prefault({})
    .describe('Of a chart that has this one as a dependency. `imagePullSecrets` are added; the rest is for others.'),
  enabled: z.boolean().optional().describe('For the `condition` of a chart that has this one as a dependency. Nothing here looks at it.'),
  nameOverride: dnsLabel(63).default('').describe('In place of the name of the chart, in names and labels.'),
  fullnameOverride: dnsLabel(52).default('').describe('The name of all objects, in place of one that is made of the release’s.'),
  commonLabels: labels.default({}).describe('Labels of every object.'),
  image: image('staking-operator', 'The image of the operator, built with `--target operator`. The service has its own: `service.image`.'),
  imagePullSecrets: pullSecrets.default([]).describe('For both images.'),
  crds: z
    .strictObject({
      enabled: z.boolean().default(true).describe('Installs and upgrades the definitions with the chart.'),
      keep: z.boolean().default(true).describe('They stay when the release is uninstalled: with them, every resource would go.'),
      protect: z
        .boolean()
        .default(true)
        .describe(
          'A ValidatingAdmissionPolicy refuses to delete them unless they are annotated `staking.dev/allow-delete: "true"`. It stays with them; with `keep: false`, set this to false too.',
        ),
    })
    .prefault({}),
  approvals: z
    .strictObject({
      policies: z
        .boolean()
        .default(true)
        .describe(
          'The admission policies that approvals rest on: who approves, and who has asked. Without them no approval counts. They have fixed names, one of each in a cluster, and stay with the definitions.',
        ),
    })
    .prefault({}),
  replicaCount: z.int().min(0).default(2).describe('One leads, the others wait with filled caches.'),
  networks: z
    .array(
      z.strictObject({
        ...anyOf(ethereumNetworkConfig.in.shape, solanaNetworkConfig.in.shape, { bumpAfterMs: 0, challengeDomain: 0, stakingApi: 0 }),
        name: networkName,
        chain: z.enum(['Ethereum', 'Solana']),
        rpcUrls: z.array(httpUrl).min(1).max(8),
        beaconApiUrls: z.array(httpUrl).max(8).optional(),
      }),
    )
    .max(32)
    .default([])
    .describe('The networks, as the networks file has them. Give each two RPC nodes of different operators.'),
  networksSecret: z
    .strictObject({ name: name.default('').describe('Empty: `networks` is used.'), key: name.default('networks.yaml') })
    .prefault({})
    .describe('A Secret that holds the whole networks file in place of `networks` and `stakingApi`, where URLs of nodes hold keys.'),
  stakingApi: stakingApi.prefault({}),
  signerSecrets: z
    .array(name.min(1))
    .max(64)
    .default(['staking-signer-keys'])
    .describe(
      'Secrets that hold the keys of signers, each as `<keyName>.privateKey` (or `.keystore.json` with `.password`, or `.keypair.json`). Any of them may come later, and so may a key in it: nothing is restarted.',
    ),
  signers: z
    .array(signer)
    .default([])
    .describe('Secrets of single signers, where their keys are named otherwise. They may come later too; a new entry restarts the pods.'),
  remoteSigners: z
    .array(remoteSigner)
    .max(256)
    .default([])
    .describe(
      'Keys that others have: Web3Signer, AWS KMS, Vault or OpenBao Transit, as the file of remote signers has them (docs/how-to/remote-signers.md). A StakingSigner names one by `spec.keyName`, and can say nothing of where it is.',
    ),
  remoteSignerSecrets: z
    .array(name.min(1))
    .max(64)
    .default([])
    .describe(
      'Secrets with what connections to them need (certificates, a token), mounted as `/var/run/staking/remote/SECRET/KEY`. A renewed one counts at once.',
    ),
  vaultToken: z
    .strictObject({
      audience: z.string().default('vault').describe('Who the token is for: `audience` of the role in Vault or OpenBao.'),
      expirationSeconds: z.int().min(600).max(86_400).default(3_600),
    })
    .prefault({})
    .describe(
      'The token of the service account that a remote signer with `transit.auth.kubernetes` logs in with. Mounted only where there is one.',
    ),
  leaderElection,
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal']).default('info'),
  ui: z
    .strictObject({ enabled: z.boolean().default(false) })
    .prefault({})
    .describe(
      'A web page of the fleet at /ui/ of the metrics port. It only reads, and asks nobody who looks: see docs/how-to/look-at-the-fleet.md before you enable it.',
    ),
  workers: z.int().min(1).max(1_000).default(16).describe('Resources of one kind that are worked on at a time.'),
  transactionRetention: duration
    .default('720h')
    .describe('How long the StakingTransaction of an exit or withdrawal is kept after its resource.'),
  extraArgs: z.array(z.string()).default([]).describe('More flags of `staking-operator operator`.'),
  serviceAccount: z
    .strictObject({
      create: z.boolean().default(true),
      name: name.default('').describe("By default the chart's full name; without `create` it has to be named."),
      annotations: annotations.default({}),
    })
    .prefault({}),
  rbac: z
    .strictObject({
      create: z.boolean().default(true),
      aggregate: z
        .boolean()
        .default(true)
        .describe('Adds the resources to the roles view, edit and admin. None of them has anything of the transaction log or of signers.'),
    })
    .prefault({}),
  resources: resources('100m', '256Mi', '768Mi').describe(
    'Enough for 10,000 stakes, of which some 500 MiB were measured to be resident (docs/explanation/performance.md).',
  ),
  podDisruptionBudget: disruption,
  serviceMonitor: monitor('A ServiceMonitor of the Prometheus operator, for both programs.'),
  podMonitor: monitor('A PodMonitor in place of it.'),
  prometheusRule: z
    .strictObject({
      enabled: z.boolean().default(false),
      labels: labels.default({}).describe('Labels that your Prometheus selects by.'),
      runbookUrl: z
        .string()
        .regex(/^(https?:\/\/\S+)?$/)
        .default('')
        .describe(
          'Where people read docs/runbooks: each alert links to its page there. `https://docs.example/runbooks` stands for `https://docs.example/runbooks/{alert}.html`, as the documentation’s site has them; write `{alert}` yourself where the address is another, such as `https://git.example/staking-operator/blob/main/docs/runbooks/{alert}.md`.',
        ),
    })
    .prefault({})
    .describe('Alerts, as a PrometheusRule.'),
  grafanaDashboard: z
    .strictObject({
      enabled: z.boolean().default(false),
      labels: labels.default({ grafana_dashboard: '1' }).describe('Labels that the sidecar of your Grafana selects by.'),
      annotations: annotations.default({}).describe('Such as grafana_folder, which the sidecar takes for the name of the folder.'),
    })
    .prefault({})
    .describe('Four dashboards, as ConfigMaps for the sidecar of Grafana.'),
  networkPolicy: z
    .strictObject({
      enabled: z.boolean().default(false),
      egress: objects
        .default([])
        .describe(
          'Where the operator may connect to besides DNS, the API server (443, 6443) and the staking API: its RPC nodes. Empty: anywhere by 443, and by the port of `stakingApi.url`. The ports of `remoteSigners` are open to anywhere: name their peers here, and close the rest by a policy of your own, where that is too wide.',
        ),
      metricsFrom: objects.default([]).describe('Who may read the metrics. Empty: everybody.'),
    })
    .prefault({}),
  ...pod,
  extraObjects: objects
    .default([])
    .describe('More objects of the release, such as an ExternalSecret with the keys of signers. Templates in them are rendered.'),
  service,
})
export type ChartValues = z.output<typeof chartValues>
