import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAst } from 'vitest/node'

/** From a function's first line to its closing brace. Blank lines and comments count: the linter's rule, which leaves them out, admits longer ones. */
const MOST_LINES = 120

interface Measured {
  readonly name: string
  readonly lines: number
}

/** Every function of a source text, those inside others too, by the name of what it is given to. */
function functionsOf(source: string): readonly Measured[] {
  const found: Measured[] = []
  const visit = (node: unknown, around: string): void => {
    if (typeof node !== 'object' || node === null) return
    if (Array.isArray(node)) {
      for (const one of node) visit(one, around)
      return
    }
    const { type, start, end, id, key, body } = node as Partial<Record<'type' | 'start' | 'end' | 'id' | 'key' | 'body', unknown>>
    const name = nameIn(id) ?? nameIn(key) ?? around
    const isFunction = type === 'FunctionDeclaration' || type === 'FunctionExpression' || type === 'ArrowFunctionExpression'
    if (isFunction && body !== null && typeof start === 'number' && typeof end === 'number')
      found.push({ name, lines: source.slice(start, end).split('\n').length })
    for (const child of Object.values(node)) visit(child, name)
  }
  visit(parseAst(source, { lang: 'ts' }), 'the module')
  return found
}

function nameIn(node: unknown): string | undefined {
  const name = typeof node === 'object' && node !== null && 'name' in node ? node.name : undefined
  return typeof name === 'string' ? name : undefined
}

const tooLong = (source: string): readonly Measured[] => functionsOf(source).filter(({ lines }) => lines > MOST_LINES)

/** A body of so many lines, some of them blank and some comments. */
const body = (lines: number): string => Array.from({ length: lines }, (_, line) => ['', '// Why.', 'act()'][line % 3]).join('\n')

describe('a function of the operator', () => {
  test.each([
    { is: 'a function', before: 'export function long(): void {', after: '}' },
    { is: 'an arrow function', before: 'const long = (): void => {', after: '}' },
    { is: 'a method', before: 'const all = { async long(): Promise<void> {', after: '} }' },
    { is: 'one that a factory returns', before: 'export const long = () => { return async (): Promise<void> => {', after: '} }' },
  ])('is measured whole, with its blank lines and comments: $is', ({ before, after }) => {
    expect(tooLong(`${before}\n${body(MOST_LINES - 2)}\n${after}`)).toEqual([])
    expect(tooLong(`${before}\n${body(MOST_LINES - 1)}\n${after}`)).toContainEqual({ name: 'long', lines: MOST_LINES + 1 })
  })

  test(`has at most ${MOST_LINES} lines`, { timeout: 60_000 }, () => {
    const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !/(^|\/)testing\//.test(file),
    )
    const sources = files.map((file) => ({ file, source: readFileSync(join(import.meta.dirname, file), 'utf8') }))
    expect(sources.flatMap(({ source }) => functionsOf(source)).length).toBeGreaterThan(1000)
    const longer = sources.flatMap(({ file, source }) => tooLong(source).map(({ name, lines }) => `${file}: ${name} has ${lines} lines`))
    expect(longer).toEqual([])
  })
})
