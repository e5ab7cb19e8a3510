/** A fenced block of a page. */
export interface Block {
  /** The heading that it stands under. */
  readonly heading: string
  /** What follows the fence: `sh`, `yaml`. */
  readonly language: string
  readonly text: string
  /** Which of the blocks of commands under its heading it is, from 1. Undefined where it holds no commands. */
  readonly nth: number | undefined
}

/** `sh` is what a person pastes; `console` has each command after `$ `, with what it prints. */
const COMMANDS: readonly string[] = ['sh', 'console']

/** The fenced blocks of a page, in order; one that is indented, as in a list, loses that. */
export function blocksOf(page: string): readonly Block[] {
  const blocks: Block[] = []
  let heading = ''
  let open: { readonly indent: number; readonly language: string; readonly lines: string[] } | undefined
  for (const line of page.split('\n')) {
    const fence = /^( *)```(\w*)$/.exec(line)
    if (fence !== null && open === undefined) open = { indent: fence[1]?.length ?? 0, language: fence[2] ?? '', lines: [] }
    else if (fence !== null && open !== undefined) {
      const before = blocks.filter((block) => block.heading === heading && block.nth !== undefined).length
      const nth = COMMANDS.includes(open.language) ? before + 1 : undefined
      blocks.push({ heading, language: open.language, text: open.lines.join('\n'), nth })
      open = undefined
    } else if (open !== undefined) open.lines.push(line.slice(open.indent))
    else heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading
  }
  return blocks
}
