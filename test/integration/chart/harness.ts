const hoodi = { name: 'hoodi', chain: 'Ethereum', rpcUrls: ['https://rpc-1.example', 'https://rpc-2.example'] }
const devnet = { name: 'devnet', chain: 'Solana', rpcUrls: ['https://solana.example'] }

const address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
/** One of each kind. */
export const remoteSigners = [
  {
    name: 'hot',
    timeoutMs: 3_000,
    web3signer: { url: 'https://web3signer.signing:9000', address, tls: { caFile: '/var/run/staking/remote/web3signer-tls/ca.crt' } },
  },
  { name: 'cloud', awsKms: { keyId: 'arn:aws:kms:eu-central-1:1:key/2' } },
  {
    name: 'sol',
    transit: {
      url: 'https://openbao.openbao.svc:8200',
      key: 'staker',
      address: '7EYnhQoR9YM3N7UoaKRoA44Uy8JeaZV3qyouov87awMs',
      auth: { kubernetes: { role: 'staking-operator' } },
    },
  },
]

/** What people set, one thing at a time and much of it together. */
export const matrix: readonly { readonly what: string; readonly values: object }[] = [
  { what: 'an operator in front of a staking API', values: { networks: [hoodi], stakingApi: { url: 'https://staking.example' } } },
  {
    what: 'an operator and the service on its embedded database',
    values: { networks: [hoodi, devnet], service: { enabled: true, replicaCount: 1, config: { solana: { domain: 'staking.example' } } } },
  },
  {
    what: 'an operator and the service on PostgreSQL',
    values: {
      networks: [{ ...hoodi, beaconApiUrls: ['https://beacon.example'] }],
      service: { enabled: true, database: { urlSecret: { name: 'staking-database' } } },
    },
  },
  {
    what: 'everything at once',
    values: {
      fullnameOverride: 'stakes',
      commonLabels: { 'example.com/team': 'staking' },
      image: { repository: 'registry.example/staking-operator', digest: `sha256:${'ab'.repeat(32)}` },
      imagePullSecrets: [{ name: 'pull' }],
      networksSecret: { name: 'networks', key: 'file.yaml' },
      stakingApi: { url: 'https://staking.example', caSecret: { name: 'api-ca' } },
      signers: [
        { keyName: 'treasury', secretName: 'treasury-key' },
        { keyName: 'vault', secretName: 'vault-key', files: ['keystore.json', 'password'] },
        { keyName: 'solana', secretName: 'solana-key', files: ['keypair.json'] },
      ],
      remoteSigners,
      remoteSignerSecrets: ['web3signer-tls', 'openbao-ca'],
      extraArgs: ['--observe-settled=1h'],
      ui: { enabled: true },
      extraEnv: [{ name: 'NODE_USE_ENV_PROXY', value: '1' }],
      extraVolumes: [{ name: 'history', persistentVolumeClaim: { claimName: 'history' } }],
      extraVolumeMounts: [{ name: 'history', mountPath: '/var/lib/staking', readOnly: true }],
      podAnnotations: { 'example.com/scraped': 'yes' },
      podLabels: { 'example.com/zone': 'a' },
      deploymentAnnotations: { 'example.com/owner': 'staking' },
      hostAliases: [{ ip: '192.0.2.7', hostnames: ['rpc-1.example'] }],
      dnsPolicy: 'ClusterFirst',
      dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
      extraObjects: [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: '{{ .Release.Name }}-extra', namespace: '{{ .Release.Namespace }}' } },
      ],
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [{ key: 'staking', operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' }],
      priorityClassName: 'system-cluster-critical',
      serviceAccount: { create: true, annotations: { 'example.com/role': 'staking' } },
      serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
      prometheusRule: { enabled: true, runbookUrl: 'https://docs.example/runbooks' },
      grafanaDashboard: { enabled: true, annotations: { grafana_folder: 'Staking' } },
      networkPolicy: { enabled: true, egress: [{ to: [{ ipBlock: { cidr: '192.0.2.0/24' } }] }], metricsFrom: [{ namespaceSelector: {} }] },
      service: {
        enabled: true,
        image: { repository: 'registry.example/staking-service', digest: `sha256:${'cd'.repeat(32)}`, pullPolicy: 'Always' },
        replicaCount: 3,
        database: { urlSecret: { name: 'staking-database' } },
        config: { networks: [hoodi], logLevel: 'debug' },
        extraEnv: [{ name: 'TZ', value: 'UTC' }],
      },
    },
  },
  {
    what: 'one replica, no rights and no definitions of its own',
    values: {
      networks: [devnet],
      stakingApi: { url: 'https://staking.example' },
      replicaCount: 1,
      crds: { enabled: false, protect: false },
      rbac: { create: false },
      serviceAccount: { create: false, name: 'mine' },
    },
  },
  {
    what: 'an operator and the service by https',
    values: {
      networks: [hoodi],
      stakingApi: { caSecret: { name: 'staking-api-tls' } },
      service: { enabled: true, tls: { secretName: 'staking-api-tls' }, database: { urlSecret: { name: 'staking-database' } } },
    },
  },
]
