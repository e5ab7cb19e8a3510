import { Argument, type Command } from 'commander'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/**
 * What can come next on a command line: subcommands, or after a dash options, or the choices of the option before. Nothing is read from a cluster.
 * @param words after the program's name; the last one is being written
 */
export function candidates(program: Command, words: readonly string[]): readonly string[] {
  const current = words.at(-1) ?? ''
  let command = program
  for (const word of words.slice(0, -1))
    command = command.commands.find((one) => one.name() === word || one.aliases().includes(word)) ?? command
  const before = words.at(-2)
  const option = command.options.find(({ short, long }) => before !== undefined && (before === short || before === long))
  const all =
    option?.argChoices ??
    (option !== undefined && (option.required || option.optional)
      ? []
      : current.startsWith('-')
        ? command.options.flatMap(({ long, hidden }) => (long === undefined || hidden ? [] : [long]))
        : [
            ...command.commands.map((one) => one.name()).filter((name) => !name.startsWith('__')),
            ...command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
          ])
  return all.filter((one) => one.startsWith(current)).toSorted()
}

/** Adds `completion SHELL`, and what its scripts ask: `__complete`, which speaks as cobra's does, so that kubectl can ask it for the plugin. */
export function addCompletion(program: Command, binary: string): void {
  program
    .command('completion')
    .description('print what makes the shell complete this program')
    .addArgument(new Argument('<shell>', 'the shell').choices([...shells]))
    .action((shell: Shell) => {
      process.stdout.write(scripts[shell](binary))
    })
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .allowUnknownOption()
    .helpOption(false)
    .action((words: readonly string[]) => {
      // cobra: the candidates, then a directive; 4 is "no files", 0 lets the shell complete files.
      const found = candidates(program, words)
      process.stdout.write(`${found.map((one) => `${one}\n`).join('')}:${found.length === 0 ? 0 : 4}\n`)
    })
}

const scripts: Readonly<Record<Shell, (binary: string) => string>> = {
  bash: (binary) => `_${named(binary)}() {
  local answer
  answer=$(${binary} __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | grep -v '^:')
  COMPREPLY=($(compgen -W "$answer" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _${named(binary)} ${binary}
`,
  zsh: (binary) => `#compdef ${binary}
_${named(binary)}() {
  local -a answer
  answer=(\${(f)"$(${binary} __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null | grep -v '^:')"})
  if (( \${#answer} )); then compadd -- $answer; else _files; fi
}
compdef _${named(binary)} ${binary}
`,
  fish: (binary) => `function __${named(binary)}
  ${binary} __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null | string match -v ':*'
end
complete -c ${binary} -a '(__${named(binary)})'
`,
}
const named = (binary: string): string => binary.replaceAll(/[^a-z0-9]/g, '_')
