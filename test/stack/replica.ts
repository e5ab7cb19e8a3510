import { freePort } from '../cluster/ports.ts'
import { createProgram, type Program } from './program.ts'
import type { Stack } from './stack.ts'

type Texts = Readonly<Record<string, string>>

/** Another replica of the same operator: it differs by its address, and by what is given: flags (`{ '--kubeconfig': … }`) and variables. */
export async function replicaOf(
  { operator, dir }: Stack,
  { flags = {}, env = {} }: { readonly flags?: Texts; readonly env?: Texts } = {},
): Promise<Program> {
  const [command = '', ...args] = operator.command
  const listen = `127.0.0.1:${await freePort()}`
  const given: Texts = { ...flags, '--listen': listen }
  return createProgram({
    name: 'other operator',
    command,
    args: args.map((arg, index) => given[args[index - 1] ?? ''] ?? arg),
    env: { ...operator.env, ...env },
    logFile: `${dir}/other-operator.log`,
    readyUrl: `http://${listen}/readyz`,
  })
}

export const metricsOf = ({ command }: Program): string => `http://${command[command.indexOf('--listen') + 1]}/metrics`
