import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { runAsArgoCd } from './argolua.ts'
import { builtGoPrograms, ensureGoPrograms } from './go-program.ts'
import { runToEnd } from './run.ts'

/** What Argo CD is asked of an object: how healthy it is, which actions it has, what an action makes of it, or what any script makes of it as an action does. */
export type Asked = { readonly object: object } & (
  | { readonly ask: 'health' }
  | { readonly ask: 'actions' }
  | { readonly ask: 'action'; readonly action: string }
  | { readonly ask: 'script'; readonly script: string }
)
export type Answer = { readonly result: unknown } | { readonly error: string }

export interface ArgoCd {
  /** Argo CD's own code; else its interpreter alone, with the scripts that its code would find. */
  readonly isOwn: boolean
  /** Asks it, with the ConfigMap of examples/argocd. */
  ask(runs: readonly Asked[], signal: AbortSignal): Promise<readonly Answer[]>
}

/** By what is built: of another version, or of other source, is not this program. */
const program = { module: 'argocd', programs: { 'argocd-lua': '.' } }

/** Builds Argo CD's own code (util/lua) with Go into the user's cache, once: 1,400 packages, some minutes on two cores. @throws with what to do */
export const buildArgoCd = async (log: (line: string) => void, signal: AbortSignal): Promise<string> =>
  ensureGoPrograms({ ...program, isComplete: true, log, signal })

/** Argo CD's own code where it was built (`node scripts/argocd.ts`, which `.ci/run` does), and the interpreter that it embeds where it was not. */
export function findArgoCd(): ArgoCd {
  const folder = builtGoPrograms(program)
  return folder === undefined ? { isOwn: false, ask: askInterpreter } : { isOwn: true, ask: (runs, signal) => askOwn(folder, runs, signal) }
}

function configMap(): Readonly<Record<string, string>> {
  const file = join(import.meta.dirname, '../../examples/argocd/argocd-cm.yaml')
  return (parse(readFileSync(file, 'utf8')) as { data: Readonly<Record<string, string>> }).data
}

async function askOwn(folder: string, runs: readonly Asked[], signal: AbortSignal): Promise<readonly Answer[]> {
  const input = JSON.stringify({ config: configMap(), runs })
  const { code, stdout, stderr } = await runToEnd({ command: join(folder, 'argocd-lua'), args: [], input, signal })
  if (code !== 0) throw new Error(`argocd-lua: ${stderr}`)
  return JSON.parse(stdout) as Answer[]
}

interface Actions {
  readonly 'discovery.lua': string
  readonly definitions: readonly { readonly name: string; readonly 'action.lua': string }[]
}

/** The same questions to the interpreter, put into the words of Argo CD's code. */
async function askInterpreter(runs: readonly Asked[], signal: AbortSignal): Promise<readonly Answer[]> {
  const config = configMap()
  const scripts = runs.map((run) => scriptOf(run, config))
  const answers = await runAsArgoCd(
    runs.map(({ object }, at) => ({ object, script: scripts[at] ?? 'return {}' })),
    signal,
  )
  return answers.map((answer, at) => {
    const ask = runs[at]?.ask
    if (scripts[at] === undefined) return ask === 'health' ? { result: null } : { error: 'no action discovery script provided' }
    if ('error' in answer || ask === 'health') return answer
    if (ask !== 'actions') return { result: [{ resource: answer.result, operation: 'patch' }] }
    const shown = answer.result as Readonly<Record<string, object>>
    return { result: Object.entries(shown).map(([name, more]) => ({ name, ...more })) }
  })
}

function scriptOf(run: Asked, config: Readonly<Record<string, string>>): string | undefined {
  if (run.ask === 'script') return run.script
  const { apiVersion, kind } = run.object as { readonly apiVersion: string; readonly kind: string }
  const of = `${apiVersion.split('/')[0]}_${kind}`
  if (run.ask === 'health') return config[`resource.customizations.health.${of}`]
  const actions = parse(config[`resource.customizations.actions.${of}`] ?? 'null') as Actions | null
  return run.ask === 'actions' ? actions?.['discovery.lua'] : actions?.definitions.find(({ name }) => name === run.action)?.['action.lua']
}
