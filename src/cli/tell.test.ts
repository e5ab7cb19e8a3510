import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Command } from 'commander'
import { afterAll, expect, test } from 'vitest'
import { ConfigError } from '../lib/config-error.ts'
import { KubeTransportError } from '../operator/kube/errors.ts'
import { holds, lastWords, tellInOneLine } from './tell.ts'

const dir = mkdtempSync(join(tmpdir(), 'tell-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
mkdirSync(join(dir, 'operator'))
/** As in the operator's image. */
const program = pathToFileURL(join(dir, 'main.js'))
const withCode = (error: Error, fields: object) => Object.assign(error, fields)

test.each([
  { what: 'a mistake of the configuration', error: new ConfigError('a: b\n  c: d'), says: 'error: a: b c: d' },
  {
    what: 'what a server says to steer the terminal',
    error: Object.assign(new Error('the API server says: \u001b[2Jno\u202eon\u009b31m'), { name: 'InspectError' }),
    says: 'error: the API server says:  [2Jno on 31m',
  },
  {
    what: 'an API server that is away',
    error: new KubeTransportError('ECONNREFUSED', "the API server can't be reached: connect ECONNREFUSED 127.0.0.1:6443"),
    says: "error: the API server can't be reached: connect ECONNREFUSED 127.0.0.1:6443",
  },
  {
    what: 'a file that cannot be written',
    error: withCode(new Error("EACCES: permission denied, mkdir '/out'"), { code: 'EACCES', syscall: 'mkdir', path: '/out' }),
    says: "error: EACCES: permission denied, mkdir '/out'",
  },
  {
    what: 'the other program, in an image that lacks it',
    error: withCode(new Error("Cannot find module '/app/dist/service/run.js' imported from /app/dist/cli/service-commands.js"), {
      code: 'ERR_MODULE_NOT_FOUND',
    }),
    says: 'error: this image holds no service: run the image that is built with --target service (docs/how-to/build-the-image.md)',
  },
])('$what is one line', ({ error, says }) => {
  expect(lastWords(error, program)).toBe(says)
})

test('a fault of the program keeps its stack', () => {
  expect(lastWords(new TypeError('x is not a function'), program)).toMatch(/^TypeError: x is not a function\n\s+at /)
})

test('an image holds what is beside its main module', () => {
  expect(holds('operator', program)).toBe(true)
  expect(holds('service', program)).toBe(false)
})

test('a wrong flag is one line, the suggestion included, of subcommands too', () => {
  const written: string[] = []
  const sub = new Command('operator').option('--networks <file>', 'x').exitOverride()
  const command = new Command('p').exitOverride().addCommand(sub)
  command.configureOutput({ writeErr: (text) => void written.push(text) })
  sub.configureOutput({ writeErr: (text) => void written.push(text) })
  expect(() => tellInOneLine(command).parse(['operator', '--netwerks', 'a'], { from: 'user' })).toThrow()
  expect(written.join('')).toBe("error: unknown option '--netwerks' (Did you mean --networks?)\n")
})
