import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { blocksOf } from './blocks.ts'
import { repository, sitePages } from './pages.ts'

/** Where the commands of a block are run as they stand: by this test file. Or why by none, and what is run in their place. */
export type Where = string | { readonly notHere: string }

const docs = (name: string) => `test/integration/docs/${name}.test.ts`
const operator = (name: string) => `test/integration/operator/${name}.test.ts`
const service = (name: string) => `test/integration/service/${name}.test.ts`
const gitops = (name: string) => `test/integration/gitops/${name}.test.ts`
const howTos = docs('how-tos')
const demo = 'test/e2e/demo.test.ts'
const notHere = (why: string): Where => ({ notHere: why })

const freshClone = notHere(
  '`npm ci` would take the packages away under the tests that run. `.ci/run` starts with it on a fresh clone, and the rest is `npm test`.',
)
const docker = notHere(
  'There is no Docker in the tests. test/image builds both targets of the Dockerfile with buildah (`npm test -- --image`).',
)

/**
 * Every block of commands of every page, by its heading, and which test runs it: one for all blocks under a heading, or one for each. A page with one name has them
 * all there. test/cluster/pages-run.ts holds the tests to it, and commands.test.ts the pages: a new block fails until it is run, or listed with its reason.
 */
const commands: Readonly<Record<string, string | Readonly<Record<string, Where | readonly Where[]>>>> = {
  'README.md': { 'staking-operator': freshClone, 'A stake': demo },
  'CONTRIBUTING.md': { Contributing: freshClone },
  'charts/staking-operator/README.md': { 'staking-operator': docs('uninstall') },
  'examples/gitops/README.md': { 'Stakes from Git': gitops('apply') },
  'docs/explanation/exactly-once.md': { 'One record for each thing to be done': demo },
  'docs/reference/configuration.md': howTos,
  'docs/tutorial/first-stake.md': {
    Start: [
      notHere('`npm ci` would take the packages away under the tests that run; test/e2e/demo.test.ts starts `npm run demo -- --keep`.'),
      demo,
    ],
    'Apply a stake of your own': demo,
    'Get it wrong': demo,
    'See what would wake you': demo,
    'Delete it': demo,
    End: demo,
  },
  'docs/how-to/add-a-network.md': howTos,
  'docs/how-to/approvals.md': operator('approvals'),
  'docs/how-to/argo-cd.md': howTos,
  'docs/how-to/back-up-and-restore-the-service.md': {
    'Back up a PostgreSQL database': service('backups'),
    'Back up the embedded database': [service('backups'), docs('first-stake')],
    // What needs a cluster; PostgreSQL and the service by itself; what needs a cluster again; what is missing.
    Restore: [
      docs('first-stake'),
      ...[service('backups'), service('backups')],
      ...[docs('first-stake'), docs('first-stake'), docs('first-stake')],
      ...[service('backups'), service('backups'), service('backups')],
    ],
  },
  'docs/how-to/build-the-image.md': {
    'Build the images': docker,
    'The same again': notHere(
      'It needs buildah and root. test/image builds with these flags, and compares the digests (`npm test -- --image`).',
    ),
    'Bill of materials and licences': docker,
  },
  'docs/how-to/emergency-stop.md': howTos,
  'docs/how-to/exit-and-withdraw.md': operator('requests-life'),
  'docs/how-to/first-stake-on-hoodi.md': docs('first-stake'),
  'docs/how-to/flux.md': gitops('flux'),
  'docs/how-to/follow.md': howTos,
  'docs/how-to/install.md': howTos,
  'docs/how-to/limits.md': operator('limits'),
  'docs/how-to/look-at-the-fleet.md': howTos,
  'docs/how-to/look-into-it.md': {
    'Get them': [freshClone, 'test/e2e/build.test.ts'],
    'What happened to a stake': operator('inspect'),
    'What a key has signed': operator('inspect'),
    'Whether all is in order': operator('inspect'),
    'Whether a deposit is what it says': operator('inspect'),
    'Complete commands': operator('inspect'),
  },
  'docs/how-to/monitor.md': docs('runbooks'),
  'docs/how-to/on-call.md': docs('runbooks'),
  'docs/how-to/plan.md': {
    'See what manifests would do before they are applied': operator('plan'),
    'A resource that is only planned': operator('approvals'),
  },
  'docs/how-to/remote-signers.md': {
    'Keep keys with a remote signer': operator('remote-signers'),
    Web3Signer: [
      notHere(
        'Web3Signer is a Java program that the package registries do not have. Its two methods are served by anvil behind mutual TLS.',
      ),
      operator('remote-signers'),
    ],
    'AWS KMS': notHere(
      'The AWS command line is none of the tests’ programs. operator/remote-signers.test.ts makes the same call (CreateKey) of local-kms.',
    ),
    'Vault or OpenBao': operator('remote-signers'),
  },
  'docs/how-to/restore.md': {
    'etcd itself': howTos,
    'A new cluster from Git': operator('inspect'),
    'Take the manifests away, keep the stakes': howTos,
    "The service's database": service('commands'),
  },
  'docs/how-to/rotate-keys.md': {
    'The API key of the operator': howTos,
    'Make the new signer': operator('rotation'),
    'Let what is in flight end': operator('rotation'),
    'Have it pay nothing more': howTos,
    'Keep it for the validators that it controls': operator('rotation'),
    'Let the old key go': operator('rotation'),
    'Hand it over': operator('remote-signers'),
  },
  'docs/how-to/run-the-service.md': {
    'Run the staking service': howTos,
    'API keys': howTos,
    "The validators' keystores": [service('keymanager'), howTos],
  },
  'docs/how-to/size.md': howTos,
  'docs/how-to/stake-solana.md': operator('remote-signers'),
  'docs/how-to/stalled.md': howTos,
  'docs/how-to/tenants.md': howTos,
  'docs/how-to/trace.md': operator('traces'),
  'docs/how-to/troubleshoot.md': howTos,
  'docs/how-to/uninstall.md': docs('uninstall'),
  'docs/how-to/upgrade.md': howTos,
}

/** The test file that runs a block of a page, below the repository, or why none does. Undefined where nobody has said. */
export function whereOf(page: string, heading: string, nth: number): Where | undefined {
  const ofPage = page.startsWith('docs/runbooks/') ? docs('runbooks') : commands[page]
  if (ofPage === undefined || typeof ofPage === 'string') return ofPage
  const ofHeading = ofPage[heading]
  return isList(ofHeading) ? ofHeading[nth - 1] : ofHeading
}
const isList = (value: Where | readonly Where[] | undefined): value is readonly Where[] => Array.isArray(value)

export interface TableEntry {
  readonly page: string
  /** Undefined where the page has one test for all. */
  readonly heading?: string
  readonly where: readonly Where[]
}

/** What the table names, one by one. */
export const tableEntries = (): readonly TableEntry[] =>
  Object.entries(commands).flatMap(([page, ofPage]): readonly TableEntry[] =>
    typeof ofPage === 'string'
      ? [{ page, where: [ofPage] }]
      : Object.entries(ofPage).map(([heading, where]) => ({ page, heading, where: isList(where) ? where : [where] })),
  )

export interface DocumentedBlock {
  readonly page: string
  readonly heading: string
  readonly nth: number
  readonly text: string
}

/** Every block of commands of every page of the site. */
export const documentedBlocks = (): readonly DocumentedBlock[] =>
  sitePages.flatMap((page) =>
    blocksOf(readFileSync(join(repository, page), 'utf8')).flatMap(({ heading, nth, text }) =>
      nth === undefined ? [] : [{ page, heading, nth, text }],
    ),
  )
