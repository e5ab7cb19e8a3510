import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programFile } from '../stack/programs.ts'
import type { ControlPlane } from './control-plane.ts'
import { findHelm } from './helm.ts'
import { runToEnd } from './run.ts'

const repository = join(import.meta.dirname, '../..')

/** A fenced block of a page. */
export interface Block {
  /** The heading that it stands under. */
  readonly heading: string
  /** What follows the fence: `sh`, `yaml`. */
  readonly language: string
  readonly text: string
}

/** The fenced blocks of a page, in order; one that is indented, as in a list, loses that. */
export function blocksOf(page: string): readonly Block[] {
  const blocks: Block[] = []
  let heading = ''
  let open: { readonly indent: number; readonly language: string; readonly lines: string[] } | undefined
  for (const line of page.split('\n')) {
    const fence = /^( *)```(\w*)$/.exec(line)
    if (fence !== null && open === undefined) open = { indent: fence[1]?.length ?? 0, language: fence[2] ?? '', lines: [] }
    else if (fence !== null && open !== undefined) {
      blocks.push({ heading, language: open.language, text: open.lines.join('\n') })
      open = undefined
    } else if (open !== undefined) open.lines.push(line.slice(open.indent))
    else heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading
  }
  return blocks
}

export interface PageOptions {
  /** Below the repository. */
  readonly page: string
  /** What stands for the page's placeholders: NAME, NAMESPACE … */
  readonly placeholders?: Readonly<Record<string, string>>
  /**
   * No pod runs here: what the page runs in the service's pod (`kubectl exec`) runs as a process instead, with this configuration, `kubectl rollout status` has
   * nothing to wait for, and `kubectl logs` prints a file.
   */
  readonly pod?: Pod
  /** `grep` that finds nothing has not failed: the page looks for what may not be there. */
  readonly mayFindNothing?: boolean
}

interface Pod {
  readonly serviceConfig: string
  /** Where each program serves what it serves at 127.0.0.1:8081 in its pod. */
  readonly operatorAddress?: string
  readonly serviceAddress?: string
  /** What the doctor finds in the operator's pod: where its networks and keys are, by the variables of its flags. */
  readonly doctorEnv?: Readonly<Record<string, string>>
  /** Files that hold what the programs have logged. */
  readonly logs?: readonly string[]
}

export interface Commands {
  /** Runs the commands under a heading, as they stand, in a folder of their own. @returns what they print. @throws with what failed, or where there are none */
  run(heading: string): Promise<string>
  /** Writes a file that the commands read. */
  file(name: string, content: string): void
  /** Saves the page's `yaml` block under a heading, filled in, as a person would. */
  save(heading: string, name: string): string
  stop(): void
}

/**
 * The commands of a page of the documentation, run by bash with a real kubectl and a real Helm against this cluster. `charts`, `crds` and `examples` are where a
 * clone of the repository has them.
 */
export async function pageCommands(
  cluster: Pick<ControlPlane, 'assets' | 'adminKubeconfigPath'>,
  { page, placeholders = {}, pod, mayFindNothing = false }: PageOptions,
  signal: AbortSignal,
): Promise<Commands> {
  const blocks = blocksOf(readFileSync(join(repository, page), 'utf8'))
  const dir = mkdtempSync(join(tmpdir(), 'page-'))
  const bin = join(dir, '.bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'kubectl'), kubectlScript(cluster.assets.kubectl, pod), { mode: 0o755 })
  symlinkSync(await findHelm({ env: process.env, log: () => {}, signal }), join(bin, 'helm'))
  for (const name of ['charts', 'crds', 'examples']) symlinkSync(join(repository, name), join(dir, name))
  const helmFolder = (name: string) => join(dir, '.helm', name)
  const env = {
    PATH: `${bin}:${process.env.PATH}`,
    HOME: dir,
    KUBECONFIG: cluster.adminKubeconfigPath,
    HELM_CACHE_HOME: helmFolder('cache'),
    HELM_CONFIG_HOME: helmFolder('config'),
    HELM_DATA_HOME: helmFolder('data'),
  }
  const filled = (text: string): string =>
    Object.entries(placeholders).reduce((rest, [name, value]) => rest.replace(new RegExp(`\\b${name}\\b`, 'g'), value), text)
  const file = (name: string, content: string): void => writeFileSync(join(dir, name), content, { mode: 0o600 })
  return {
    async run(heading) {
      const found = blocks.filter((block) => block.heading === heading && block.language === 'sh')
      if (found.length === 0) throw new Error(`${page} has no commands under "${heading}"`)
      let printed = ''
      for (const { text } of found) {
        const { code, stdout, stderr } = await runToEnd({
          command: 'bash',
          args: ['-euo', 'pipefail', '-c', `${mayFindNothing ? 'grep() { command grep "$@" || [ $? -eq 1 ]; }\n' : ''}${filled(text)}`],
          cwd: dir,
          env,
          signal: AbortSignal.any([signal, AbortSignal.timeout(180_000)]),
        })
        if (code !== 0) throw new Error(`${page}, ${heading}: exit code ${code}\n${filled(text)}\n${stdout}\n${stderr}`)
        printed += stdout
      }
      return printed
    },
    file,
    save(heading, name) {
      const [block, ...more] = blocks.filter((each) => each.heading === heading && each.language === 'yaml')
      if (block === undefined || more.length > 0) throw new Error(`${page} has ${more.length} blocks of YAML under "${heading}", not one`)
      file(name, filled(block.text))
      return join(dir, name)
    },
    stop: () => rmSync(dir, { recursive: true, force: true }),
  }
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** kubectl itself, but for what needs a pod. */
function kubectlScript(kubectl: string, pod: Pod | undefined): string {
  const instead =
    pod === undefined
      ? ''
      : `case " $* " in
  *" rollout status "*) exit 0 ;;
  *" logs "*)
    ${quoted(kubectl)} "$@"
    exec cat ${(pod.logs ?? ['/dev/null']).map(quoted).join(' ')} ;;
  *" exec "*)
    at=${quoted(pod.operatorAddress ?? '127.0.0.1:1')}
    case " $* " in *" deploy/staking-operator-service "*) at=${quoted(pod.serviceAddress ?? '127.0.0.1:1')} ;; esac
    while [ "$1" != -- ]; do shift; done
    if [ "$3" = -e ]; then exec ${quoted(process.execPath)} -e "\${4//127.0.0.1:8081/$at}"; fi
    shift 3 # --, node, the program
    if [ "$1" = doctor ]; then exec env ${Object.entries(pod.doctorEnv ?? {})
      .map(([name, value]) => quoted(`${name}=${value}`))
      .join(' ')} ${quoted(process.execPath)} ${quoted(programFile('src/main.ts'))} "$@"; fi
    exec ${quoted(process.execPath)} ${quoted(programFile('src/main.ts'))} "$@" --config ${quoted(pod.serviceConfig)} ;;
esac
`
  return `#!/bin/bash\n${instead}exec ${quoted(kubectl)} "$@"\n`
}
