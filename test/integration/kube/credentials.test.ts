import { describe, expect, test } from 'vitest'
import type { KubeUser } from '../../../src/operator/kube/kubeconfig.ts'
import { credentialsOf } from './credentials-of.ts'
import { createFakeClock } from './fake-clock.ts'

test('what a plugin prints, which is told that nobody can be asked', async () => {
  const program =
    'const {spec}=JSON.parse(process.env.KUBERNETES_EXEC_INFO);console.log(JSON.stringify({status:{token:spec.interactive+"-"+process.env.REGION,clientCertificateData:"cert",clientKeyData:"key"}}))'
  const exec = { command: process.execPath, args: ['-e', program], env: [{ name: 'REGION', value: 'eu' }] }
  expect(await credentialsOf({ exec }).access()).toMatchObject({
    headers: [['authorization', 'Bearer false-eu']],
    tls: { cert: 'cert', key: 'key' },
  })
})

test('a plugin is run again when what it gave has expired, and not before', async () => {
  const clock = createFakeClock()
  const expires = new Date(clock.now().getTime() + 60_000).toISOString()
  const program = `console.log(JSON.stringify({status:{token:String(process.hrtime.bigint()),expirationTimestamp:'${expires}'}}))`
  const credentials = credentialsOf({ exec: { command: process.execPath, args: ['-e', program] } }, clock)
  const first = await credentials.access()
  await clock.advance(30_000)
  expect(await credentials.renew({ ...first })).toBe(first)
  credentials.access()
  await clock.advance(31_000)
  credentials.access()
  const later = await credentials.renew(first)
  expect(later.headers).not.toEqual(first.headers)
})

describe('is refused with a reason that quotes no secret', () => {
  test.each<{ what: string; user: Omit<KubeUser, 'name'>; code: string; says: RegExp }>([
    {
      what: 'a plugin that is not there',
      user: { exec: { command: '/none/plugin' } },
      code: 'CREDENTIALS',
      says: /spawn \/none\/plugin ENOENT$/,
    },
    {
      what: 'a plugin that fails',
      user: { exec: { command: process.execPath, args: ['-e', 'console.error("hunter2");process.exit(1)'] } },
      code: 'PLUGIN',
      says: /^the credentials of user "u" could not be loaded$/,
    },
    {
      what: 'a plugin that prints something else',
      user: { exec: { command: process.execPath, args: ['-e', 'console.log("hunter2")'] } },
      code: 'PLUGIN',
      says: /could not be loaded$/,
    },
    { what: 'a token file that is not there', user: { tokenFile: '/none/token' }, code: 'CREDENTIALS', says: /ENOENT.*\/none\/token/ },
    { what: 'a plugin of another kind', user: { authProvider: 'gcp' }, code: 'CREDENTIALS', says: /auth-provider "gcp" is not supported/ },
  ])('$what', async ({ user, code, says }) => {
    await expect(credentialsOf(user).access()).rejects.toMatchObject({ code, message: expect.stringMatching(says) })
  })
})
