import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { memoryLimit, tooLittleMemory } from './memory.ts'

const mib = 1024 * 1024
const files = (content: Record<string, string>) => (path: string) => {
  const text = content[path]
  if (text === undefined) throw new Error('ENOENT')
  return text
}
const v2 = '/sys/fs/cgroup/memory.max'
const v1 = '/sys/fs/cgroup/memory/memory.limit_in_bytes'

test.each([
  { given: { [v2]: '536870912\n' }, expected: 512 * mib },
  { given: { [v2]: 'max\n' }, expected: undefined },
  { given: { [v1]: '1073741824\n' }, expected: 1024 * mib },
  { given: { [v1]: '9223372036854771712\n' }, expected: undefined },
  { given: {}, expected: undefined },
])('the limit of $given is $expected', ({ given, expected }) => {
  expect(memoryLimit(files(given))).toBe(expected)
})

test.each([
  { limit: 512 * mib, expected: /needs 896 MiB of memory, and this container's limit is 512 MiB: raise the limit .*or use PostgreSQL/ },
  { limit: 895 * mib, expected: /895 MiB/ },
])('an embedded database within $limit bytes is refused in words', ({ limit, expected }) => {
  expect(tooLittleMemory(limit)).toMatch(expected)
})

test.each([896 * mib, 1024 * mib, undefined])('an embedded database within %s bytes may start', (limit) => {
  expect(tooLittleMemory(limit)).toBeUndefined()
})

test('the chart gives the container what the embedded database needs', () => {
  const text = readFileSync(join(import.meta.dirname, '../../../charts/staking-operator/values.yaml'), 'utf8')
  const { service } = parse(text) as { service: { resources: { limits: { memory: string } } } }
  const [, amount = '', unit = ''] = /^([0-9]+)(Mi|Gi)$/.exec(service.resources.limits.memory) ?? []
  expect(tooLittleMemory(Number(amount) * (unit === 'Gi' ? 1024 : 1) * mib)).toBeUndefined()
})
