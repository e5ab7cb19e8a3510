import type { Command, Option } from 'commander'

/**
 * A command line as people write it who come from kubectl, as commander takes it: `-o=json` is `-ojson`, and flags before the command
 * (`kubectl staking -n team-a status validator-1`) are those of the command. What no command knows stays where it is, to be refused there. Pure.
 * @param words after the program's name
 */
export function asCommanderTakes(program: Command, words: readonly string[]): readonly string[] {
  const end = words.includes('--') ? words.indexOf('--') : words.length
  const flat = words.slice(0, end).map((word) => word.replace(/^(-[A-Za-z])=/, '$1'))
  const { leading, rest } = leadingFlags(program, flat)
  return [...rest, ...leading, ...words.slice(end)]
}

function leadingFlags(
  program: Command,
  words: readonly string[],
): { readonly leading: readonly string[]; readonly rest: readonly string[] } {
  const options = allOptions(program)
  let at = 0
  while (words[at]?.startsWith('-') === true) {
    const word = words[at] ?? ''
    const option = options.find(({ short, long }) => word === short || word === long)
    const isWhole = option === undefined ? options.some((one) => holdsItsValue(one, word)) : !option.required
    if (option === undefined && !isWhole) return { leading: [], rest: words }
    at += isWhole ? 1 : 2
  }
  // Without a command behind them there is nothing that they could be of.
  return at >= words.length ? { leading: [], rest: words } : { leading: words.slice(0, at), rest: words.slice(at) }
}

/** `--output=json`, `-ojson`. */
const holdsItsValue = ({ short, long, required }: Option, word: string): boolean =>
  required && ((long !== undefined && word.startsWith(`${long}=`)) || (short !== undefined && word.length > 2 && word.startsWith(short)))

const allOptions = (command: Command): readonly Option[] => command.commands.flatMap((one) => [...one.options, ...allOptions(one)])
