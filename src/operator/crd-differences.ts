import type { JsonObject } from '../resources/crd.ts'

/** How an installed definition falls short of the one that the operator was built for: what each place lacks, such as `.status.state (Unclaimed)`. */
export interface Differences {
  /** What is dropped in silence, or refused for ever, of what the operator writes and reads. */
  readonly lacking: readonly string[]
  /** What is let through that should be refused, and what is not filled in. The operator looks at everything once more, so that this stops nothing. */
  readonly lax: readonly string[]
}

type Written = 'by others' | 'by the operator'
const upperBounds = ['maxLength', 'maxItems', 'maxProperties', 'maximum'] as const
const lowerBounds = ['minLength', 'minItems', 'minProperties', 'minimum'] as const

/**
 * Compares two schemas. What only the installed one has is no difference: it is newer.
 * @param written whose word it is: `status` is the operator's everywhere. Where it is the operator's, its rules must be the same ones: one that this version does
 * not know may refuse what it writes, and one that is missing may let it be unwritten.
 */
export function differences(expected: JsonObject, installed: JsonObject | undefined, written: Written, path = ''): Differences {
  if (installed === undefined) return { lacking: [path || '.'], lax: [] }
  if (installed['x-kubernetes-preserve-unknown-fields'] === true) return { lacking: [], lax: [] }
  const here = path || '.'
  const rules = ruleDifferences(expected, installed, here)
  const isOurs = written === 'by the operator'
  const own: Differences = {
    lacking: [...narrower(expected, installed).map((what) => `${here} (${what})`), ...(isOurs ? [...rules.missing, ...rules.unknown] : [])],
    lax: [
      ...(isOurs ? [] : rules.missing),
      ...(expected.default !== undefined && installed.default === undefined ? [`${here} (its default)`] : []),
    ],
  }
  const below = [
    ...Object.entries(childrenOf(expected)).map(([name, child]) =>
      differences(child, childrenOf(installed)[name], name === 'status' && path === '' ? 'by the operator' : written, `${path}.${name}`),
    ),
    ...(['items', 'additionalProperties'] as const).flatMap((each) =>
      isObject(expected[each]) ? [differences(expected[each], objectOf(installed[each]), written, `${path}[]`)] : [],
    ),
  ]
  return {
    lacking: [...own.lacking, ...below.flatMap(({ lacking }) => lacking)],
    lax: [...own.lax, ...below.flatMap(({ lax }) => lax)],
  }
}

/** What the installed place refuses, and the expected one takes. */
function narrower(expected: JsonObject, installed: JsonObject): string[] {
  const values = (node: JsonObject) => (Array.isArray(node.enum) ? node.enum : undefined)
  const taken = values(installed)
  const wanted = values(expected)
  const refused =
    taken === undefined ? [] : wanted === undefined ? ['any text'] : wanted.filter((value) => !taken.includes(value)).map(String)
  const required = (node: JsonObject): readonly string[] => (Array.isArray(node.required) ? node.required.map(String) : [])
  return [
    ...refused,
    ...(['type', 'format', 'x-kubernetes-list-type'] as const)
      .filter((key) => installed[key] !== undefined && installed[key] !== expected[key])
      .map((key) => `${key} ${String(expected[key] ?? 'left out')}`),
    ...(installed.pattern !== undefined && installed.pattern !== expected.pattern ? ['its pattern'] : []),
    ...(expected.nullable === true && installed.nullable !== true ? ['null'] : []),
    ...upperBounds.flatMap((key) => {
      const [given, most] = [expected[key], installed[key]]
      return isNumber(most) && !(isNumber(given) && given <= most) ? [`${key} ${isNumber(given) ? given : 'left out'}`] : []
    }),
    ...lowerBounds.flatMap((key) => {
      const [given, least] = [expected[key], installed[key]]
      return isNumber(least) && !(isNumber(given) && given >= least) ? [`${key} ${isNumber(given) ? given : 'left out'}`] : []
    }),
    ...required(installed)
      .filter((name) => !required(expected).includes(name) && name in childrenOf(expected))
      .map((name) => `may be without ${name}`),
  ]
}

function ruleDifferences(
  expected: JsonObject,
  installed: JsonObject,
  here: string,
): { readonly missing: string[]; readonly unknown: string[] } {
  const of = (node: JsonObject) => {
    const rules = node['x-kubernetes-validations']
    return Array.isArray(rules) ? rules.filter(isObject) : []
  }
  const without = (some: readonly JsonObject[], others: readonly JsonObject[]) =>
    some.filter(({ rule }) => !others.some((other) => other.rule === rule))
  const words = ({ message, rule }: JsonObject) => String(message ?? rule).slice(0, 80)
  return {
    missing: without(of(expected), of(installed)).map((one) => `${here} (the rule "${words(one)}")`),
    unknown: without(of(installed), of(expected)).map((one) => `${here} (a rule that the operator does not have: "${words(one)}")`),
  }
}

const isNumber = (value: unknown): value is number => typeof value === 'number'
const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value)
const objectOf = (value: unknown): JsonObject | undefined => (isObject(value) ? value : undefined)
const childrenOf = (schema: JsonObject): { readonly [name: string]: JsonObject } =>
  (schema.properties ?? {}) as { [name: string]: JsonObject }
