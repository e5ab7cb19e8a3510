import { runService } from '../../../src/service/run.ts'

/** The service as a process of its own, so that it can be killed. Arguments: its configuration file. */
const [config = ''] = process.argv.slice(2)
const ending = new AbortController()
process.once('SIGTERM', () => ending.abort())
await runService({ config, version: '0.0.0' }, ending.signal)
