import { fastify } from 'fastify'
import { sql } from 'kysely'
import { parseEth } from '../../src/lib/amounts.ts'
import { createLogger } from '../../src/lib/log.ts'
import { loadServiceConfig } from '../../src/service/config.ts'
import type { DepositTerms } from '../../src/service/ethereum/deposit-maker.ts'
import { createDepositMaker } from '../../src/service/ethereum/deposit-maker.ts'
import { startDepositWorkers } from '../../src/service/ethereum/deposit-workers.ts'
import { readSeedFile } from '../../src/service/seed.ts'
import { openStore } from '../../src/service/store/database.ts'

/**
 * What the service is measured beside: Fastify with nothing around. GET answers a text of a stake's size; POST does the BLS of a stake and two writes, each a
 * round trip to the database, and nothing else. Arguments: the service's configuration file, a port, the text to answer.
 */
const [file = '', port = '0', answer = ''] = process.argv.slice(2)
const config = await loadServiceConfig(file, {}, process.env)
const keys = await readSeedFile(config.seedFile)
const log = createLogger({ program: 'bench', level: 'error' })
const deposits = startDepositWorkers({ seedFile: config.seedFile, fingerprint: keys.fingerprint, inline: createDepositMaker(keys), log })
const store = await openStore(config.database)
const [network] = config.networks
if (network?.chain !== 'Ethereum') throw new Error('the first network must be one of Ethereum')
const terms: DepositTerms = {
  network,
  amountGwei: parseEth('32'),
  credentialsType: '0x02',
  withdrawalAddress: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
}
let count = 0
const app = fastify()
app.get('/stake', async (_request, reply) => reply.type('application/json; charset=utf-8').send(answer))
app.post('/stake', async (_request, reply) => {
  const index = BigInt(++count)
  const made = await deposits.make(index, terms, AbortSignal.timeout(20_000))
  const reference = `bench ${index}`
  await sql`insert into external_references values ('bench', ${reference}, ${made.pubkey})`.execute(store.db)
  await sql`update external_references set resource_id = 'done' where account = 'bench' and reference = ${reference}`.execute(store.db)
  return reply.status(201).type('application/json; charset=utf-8').send(answer)
})
await app.listen({ host: '127.0.0.1', port: Number(port) })
