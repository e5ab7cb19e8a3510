import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { apiKeysCreate } from '../../../src/service/commands.ts'
import { startAnvil } from '../../chains/anvil.ts'
import { callService, withdrawalAddress } from './harness.ts'
import { createPayer } from './payer.ts'
import { serviceFiles, spawnService } from './processes.ts'

test('after a restore from an older backup, no key that was handed out comes again', async () => {
  const anvil = await startAnvil()
  const files = serviceFiles(anvil)
  try {
    const key = (await apiKeysCreate({ config: files.config, account: 'acme' })).key.reveal()
    const data = join(files.folder, 'data')
    const backup = join(files.folder, 'backup')
    const create = async (url: string, name: string) => {
      const answer = await callService(url, 'POST', '/v1/ethereum/stakes', {
        key,
        idempotencyKey: name,
        body: { network: 'devnet', amountEth: 32, withdrawalAddress },
      })
      expect(answer.status).toBe(201)
      return answer.body
    }
    const first = await spawnService(files.config)
    await create(first.url, 'before')
    await first.process.stop()
    cpSync(join(data, 'pgdata'), backup, { recursive: true })

    // Lost with the restore: four stakes, of which the last is paid.
    const second = await spawnService(files.config)
    const lost = []
    for (let count = 0; count < 4; count++) lost.push(await create(second.url, `lost/${count}`))
    await createPayer(anvil).pay(lost[3].unsignedTransaction)
    await second.process.stop()
    rmSync(join(data, 'pgdata'), { recursive: true })
    cpSync(backup, join(data, 'pgdata'), { recursive: true })

    const third = await spawnService(files.config)
    const pubkeys = lost.map((stake) => stake.depositData.pubkey)
    for (let count = 0; count < 6; count++) expect(pubkeys).not.toContain((await create(third.url, `new/${count}`)).depositData.pubkey)
    expect(third.process.output()).toContain('was the database restored from an older backup?')
    await third.process.stop()
  } finally {
    files.remove()
    await anvil.stop()
  }
})
