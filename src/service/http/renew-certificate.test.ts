import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createAuthority, type Issued } from '../../../test/cluster/certificates.ts'
import type { Clock } from '../../lib/clock.ts'
import { createLogger } from '../../lib/log.ts'
import { type Certificate, readCertificate } from './certificate.ts'
import { renewCertificate } from './renew-certificate.ts'

const authority = createAuthority()
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'renew-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

let version = 0
/** As the kubelet does: a folder of its own for each version, and a link that is swapped. */
function mount({ cert, key }: Issued): void {
  version++
  const next = join(folder, `..${version}`)
  mkdirSync(next)
  writeFileSync(join(next, 'tls.crt'), cert)
  writeFileSync(join(next, 'tls.key'), key)
  symlinkSync(next, join(folder, '..next'))
  renameSync(join(folder, '..next'), join(folder, '..data'))
}

/** Runs it with these between its looks, in turn; a look or a second look ends each sleep. */
async function run(turns: readonly (() => void)[], first: Issued, show?: (certificate: Certificate) => void) {
  mount(first)
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(folder, name))
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') }
  const ending = new AbortController()
  const waiting = [...turns]
  const clock: Clock = {
    now: () => new Date(),
    monotonicMs: () => 0,
    sleep: async (_ms, signal) => {
      const turn = waiting.shift()
      if (turn === undefined) ending.abort()
      signal.throwIfAborted()
      turn?.()
    },
  }
  const lines: string[] = []
  const shown: string[] = []
  await renewCertificate(
    {
      files,
      first: await readCertificate(files),
      show: (certificate) => {
        show?.(certificate)
        shown.push(certificate.chain)
      },
      clock,
      log: createLogger({ program: 'service', level: 'info', destination: { write: (line) => lines.push(line) } }),
      lookMs: 30_000,
    },
    ending.signal,
  )
  const said = lines.map((line) => {
    const { level, msg, reason } = JSON.parse(line) as Record<string, string>
    return [level, msg, ...(reason === undefined ? [] : [reason.replaceAll(folder, '')])].join(': ')
  })
  return { shown, said, lines }
}
const nothing = () => undefined
const refused = 'error: the renewed certificate of the staking API cannot be used: the one from before is shown'
const renewed = 'info: the staking API shows a renewed certificate'

test('a renewed certificate is shown once, and what has not changed is not', async () => {
  const [old, next] = [authority.issue(), authority.issue()]
  const { shown, said } = await run([nothing, () => mount(next), nothing, nothing], old)
  expect(shown).toEqual([next.cert])
  expect(said).toEqual([renewed])
})

test('a pair that does not fit is told once; the one from before stays, and what is right counts again', async () => {
  const [old, next, right] = [authority.issue(), authority.issue(), authority.issue()]
  const broken = () => mount({ cert: next.cert, key: old.key })
  const empty = () => mount({ cert: '', key: next.key })
  // Each look at something wrong is followed by a second one.
  const { shown, said, lines } = await run(
    [broken, nothing, nothing, nothing, empty, nothing, nothing, nothing, () => mount(right), nothing],
    old,
  )
  expect(shown).toEqual([right.cert])
  expect(said).toEqual([
    `${refused}: tls.keyFile: /tls.key is not the key of the first certificate in /tls.crt`,
    `${refused}: tls.certFile: /tls.crt is empty`,
    renewed,
  ])
  expect(lines.join('')).not.toContain('PRIVATE KEY')
})

test('a key that comes a moment after its certificate is no mistake', async () => {
  const [old, next] = [authority.issue(), authority.issue()]
  const { shown, said } = await run([() => mount({ cert: next.cert, key: old.key }), () => mount(next), nothing], old)
  expect(shown).toEqual([next.cert])
  expect(said).toEqual([renewed])
})

test('what is put back as it was is told, and is no renewal', async () => {
  const old = authority.issue()
  const { shown, said } = await run([() => mount({ cert: 'x', key: old.key }), nothing, () => mount(old), nothing], old)
  expect(shown).toEqual([])
  expect(said).toEqual([
    `${refused}: tls.certFile: /tls.crt holds no certificate in PEM, or one that is damaged`,
    'info: the files hold the certificate again that the staking API shows',
  ])
})

test('an expired certificate does not take the place of a good one', async () => {
  const expired = authority.issue({ validTo: new Date(Date.now() - 60_000) })
  const { shown, said } = await run([() => mount(expired), nothing], authority.issue())
  expect(shown).toEqual([])
  expect(said).toEqual([expect.stringContaining('tls.certFile: the certificate in /tls.crt has expired (')])
})

test('one that is shown and has expired is told once, and the next one is shown', async () => {
  const next = authority.issue()
  const { shown, said } = await run([nothing, nothing, () => mount(next)], authority.issue({ validTo: new Date(Date.now() - 60_000) }))
  expect(said).toEqual(['error: the certificate of the staking API has expired: clients refuse it', renewed])
  expect(shown).toEqual([next.cert])
})

test('one that the server does not take is told without its words', async () => {
  const [old, next] = [authority.issue(), authority.issue()]
  const { shown, said } = await run([() => mount(next), nothing], old, () => {
    throw new Error('of the library, with a key in it')
  })
  expect(shown).toEqual([])
  expect(said).toEqual([`${refused}: the TLS library refuses it`])
})
