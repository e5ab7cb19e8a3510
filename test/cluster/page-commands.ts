import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { type Block, blocksOf } from '../../scripts/docs/blocks.ts'
import { COMPILE_CACHE } from '../stack/compile-cache.ts'
import { programFile } from '../stack/programs.ts'
import type { ControlPlane } from './control-plane.ts'
import { findHelm } from './helm.ts'
import { hasRun } from './pages-run.ts'
import { type RunResult, runToEnd } from './run.ts'

const repository = join(import.meta.dirname, '../..')
/** Of a clone, what its commands never touch: they would change what is tested here. */
const NOT_LINKED: readonly string[] = ['.git', 'dist', '.demo']

export interface PageOptions {
  /** Below the repository. */
  readonly page: string
  /** What stands for the page's placeholders: NAME, NAMESPACE … Of a command single words are replaced, and nothing of several: it stays the page's own. */
  readonly placeholders?: Readonly<Record<string, string>>
  /**
   * No pod runs here: what the page runs in the service's pod (`kubectl exec`) runs as a process instead, with this configuration, `kubectl rollout status` has
   * nothing to wait for, `kubectl port-forward` nothing to connect to, and `kubectl logs` prints a file.
   */
  readonly pod?: Pod
  /** `grep` that finds nothing has not failed: the page looks for what may not be there. */
  readonly mayFindNothing?: boolean
  /** What the reader has in the environment beside a kubeconfig. */
  readonly env?: Readonly<Record<string, string>>
  /** Folders with programs that the reader has beside kubectl, helm and the repository's own, which they come before; relative ones are in the reader's folder. */
  readonly path?: readonly string[]
  /** There is a terminal, and this is typed. */
  readonly typed?: string
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
  /** Where they run. */
  readonly dir: string
  /**
   * Runs the commands under a heading, as they stand, in a folder of their own: all blocks of them, or the nth. Of a `console` block, what is printed must have the
   * titles that the page shows.
   * @returns what they print. @throws with what failed, or where there are none
   */
  run(heading: string, nth?: number): Promise<string>
  /** The same, for commands which the page says are refused. @returns what they print on standard error. @throws where they succeed */
  fails(heading: string, nth?: number): Promise<string>
  /** Writes a file that the commands read, and the folders to it. */
  file(name: string, content: string): void
  /** Saves the page's one block in a language under a heading, filled in, as a person would. Default: `yaml`. @returns where */
  save(heading: string, name: string, language?: string): string
  stop(): void
}

/**
 * The commands of a page of the documentation, run by bash with a real kubectl, a real Helm and this repository's own programs against this cluster, where there is
 * one. They run in a folder that looks as a clone of the repository does. Which file runs which block stands in scripts/docs/commands.ts: a file that leaves one out
 * of what it is named for fails at its end.
 */
export async function pageCommands(
  cluster: Pick<ControlPlane, 'assets' | 'adminKubeconfigPath'> | undefined,
  { page, placeholders = {}, pod, mayFindNothing = false, env: given = {}, path = [], typed }: PageOptions,
  signal: AbortSignal,
): Promise<Commands> {
  const blocks = blocksOf(readFileSync(join(repository, page), 'utf8'))
  const dir = mkdtempSync(join(tmpdir(), 'page-'))
  for (const name of readdirSync(repository)) if (!NOT_LINKED.includes(name)) symlinkSync(join(repository, name), join(dir, name))
  const bin = join(dir, '.bin')
  mkdirSync(bin)
  for (const [name, entry] of [
    ['staking-operator', 'src/main.ts'],
    ['kubectl-staking', 'src/kubectl-staking.ts'],
  ] as const)
    writeFileSync(join(bin, name), `#!/bin/bash\nexec ${quoted(process.execPath)} ${quoted(programFile(entry))} "$@"\n`, { mode: 0o755 })
  if (cluster !== undefined) {
    writeFileSync(join(bin, 'kubectl'), kubectlScript(cluster.assets.kubectl, pod), { mode: 0o755 })
    symlinkSync(await findHelm({ env: process.env, log: () => {}, signal }), join(bin, 'helm'))
  }
  const helmFolder = (name: string) => join(dir, '.helm', name)
  const env = {
    ...COMPILE_CACHE,
    PATH: [...path.map((folder) => resolve(dir, folder)), bin, process.env.PATH].join(':'),
    HOME: dir,
    // Nobody's own kubeconfig.
    KUBECONFIG: cluster?.adminKubeconfigPath ?? '/nowhere',
    HELM_CACHE_HOME: helmFolder('cache'),
    HELM_CONFIG_HOME: helmFolder('config'),
    HELM_DATA_HOME: helmFolder('data'),
    ...given,
  }
  const isWord = (name: string): boolean => !/\s/.test(name)
  const filled = (text: string, which: (name: string) => boolean = () => true): string =>
    // The longest first: one may be the beginning of another.
    Object.entries(placeholders)
      .filter(([name]) => which(name))
      .toSorted(([a], [b]) => b.length - a.length)
      .reduce((rest, [name, value]) => rest.replace(new RegExp(`(?<!\\w)${name}(?!\\w)`, 'g'), value), text)
  const file = (name: string, content: string): void => {
    mkdirSync(dirname(join(dir, name)), { recursive: true })
    writeFileSync(join(dir, name), content, { mode: 0o600 })
  }
  const blocksUnder = (heading: string, nth: number | undefined): readonly Block[] => {
    const found = blocks.filter((block) => block.heading === heading && block.nth !== undefined && (nth === undefined || block.nth === nth))
    if (found.length === 0) throw new Error(`${page} has no commands${nth === undefined ? '' : ` (${nth})`} under "${heading}"`)
    return found
  }
  const bash = (script: string): Promise<RunResult> => {
    const args = ['-euo', 'pipefail', '-c', `${mayFindNothing ? 'grep() { command grep "$@" || [ $? -eq 1 ]; }\n' : ''}${script}`]
    return runToEnd({
      ...(typed === undefined
        ? { command: 'bash', args }
        : // A terminal for it, by a program of util-linux.
          { command: 'script', args: ['-qec', `bash ${args.map(quoted).join(' ')}`, '/dev/null'], input: typed }),
      cwd: dir,
      env,
      signal: AbortSignal.any([signal, AbortSignal.timeout(180_000)]),
    })
  }
  const succeeds = async (heading: string, script: string): Promise<string> => {
    const { code, stdout, stderr } = await bash(script)
    if (code !== 0) throw new Error(`${page}, ${heading}: exit code ${code}\n${script}\n${stdout}\n${stderr}`)
    return stdout
  }
  return {
    dir,
    async run(heading, nth) {
      let printed = ''
      for (const { language, text, nth: which } of blocksUnder(heading, nth)) {
        if (language === 'sh') printed += await succeeds(heading, filled(text, isWord))
        else
          for (const { command, titles } of shownIn(filled(text, isWord))) {
            const stdout = await succeeds(heading, command)
            const shown = wordsOf(stdout.split('\n')[0])
            if (titles.length > 0 && shown.join() !== titles.join())
              throw new Error(
                `${page}, ${heading}: ${command} prints the titles ${shown.join(' ')}, and the page shows ${titles.join(' ')}`,
              )
            printed += stdout
          }
        hasRun(page, heading, which)
      }
      return printed
    },
    async fails(heading, nth) {
      const [block, ...more] = blocksUnder(heading, nth)
      if (block === undefined || more.length > 0) throw new Error(`${page} has more than one block under "${heading}": say which`)
      const script = filled(block.text, isWord)
      const { code, stdout, stderr } = await bash(script)
      if (code === 0) throw new Error(`${page}, ${heading}: this was to fail\n${script}\n${stdout}`)
      hasRun(page, heading, block.nth)
      return stderr
    },
    file,
    save(heading, name, language = 'yaml') {
      const found = blocks.filter((each) => each.heading === heading && each.language === language)
      const [block] = found
      if (block === undefined || found.length > 1)
        throw new Error(`${page} has ${found.length} blocks of ${language} under "${heading}", not one`)
      file(name, filled(block.text))
      return join(dir, name)
    },
    stop: () => rmSync(dir, { recursive: true, force: true }),
  }
}

const wordsOf = (line = ''): readonly string[] => line.split(/\s+/).filter((word) => word !== '')

/** The commands of a `console` block, each with the first line that is shown of what it prints. */
function shownIn(text: string): readonly { readonly command: string; readonly titles: readonly string[] }[] {
  const lines = text.split('\n')
  return lines.flatMap((line, index) => {
    if (!line.startsWith('$ ')) return []
    const next = lines[index + 1]
    return [{ command: line.slice(2), titles: next?.startsWith('$ ') ? [] : wordsOf(next) }]
  })
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** kubectl itself, but for what needs a pod. */
function kubectlScript(kubectl: string, pod: Pod | undefined): string {
  const instead =
    pod === undefined
      ? ''
      : `case " $* " in
  *" rollout status "*) exit 0 ;;
  *" port-forward "*)
    # What it names is there, and has the port.
    while [[ "$1" != port-forward ]]; do options+=("$1"); shift; done
    ${quoted(kubectl)} "\${options[@]}" get "$2" -o jsonpath='{.spec.template.spec.containers[*].ports[*].containerPort}' | grep -qw "\${3#*:}"
    exit $? ;;
  *" logs "*)
    # It says what it would not find. Of a Deployment it would wait 20 s for a pod.
    ${quoted(kubectl)} "$@" --pod-running-timeout=100ms
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
