import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AwsClient } from 'aws4fetch'
import { ensureGoPrograms } from './go-program.ts'
import { freePort } from './ports.ts'
import { startProcess } from './process.ts'

export interface LocalKms {
  readonly url: string
  readonly region: string
  /** For a program that is to use it: local-kms looks at no signature. */
  readonly env: Readonly<Record<string, string>>
  /** One call as the AWS API has it, such as `CreateKey`. @throws where it is not answered with 200 */
  call(action: string, input: object): Promise<Record<string, unknown>>
  stop(): Promise<void>
}

/**
 * Starts local-kms, AWS KMS by somebody else, which is built with Go into the user's cache once. It listens on all addresses of the machine, whatever is asked:
 * its keys are of tests alone, and made anew each time.
 */
export async function startLocalKms(signal: AbortSignal): Promise<LocalKms> {
  const folder = await ensureGoPrograms({
    module: 'local-kms',
    programs: { 'local-kms': 'github.com/nsmithuk/local-kms' },
    isComplete: true,
    signal,
  })
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const dataDir = mkdtempSync(join(tmpdir(), 'staking-kms-'))
  const region = 'eu-central-1'
  const env = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' }
  const client = new AwsClient({ accessKeyId: 'test', secretAccessKey: 'test', region, service: 'kms', retries: 0 })
  const call: LocalKms['call'] = async (action, input) => {
    const answer = await client.fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `TrentService.${action}` },
      body: JSON.stringify(input),
    })
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`local-kms: ${action}: ${answer.status} ${text}`)
    return JSON.parse(text) as Record<string, unknown>
  }
  const server = await startProcess({
    name: 'local-kms',
    command: join(folder, 'local-kms'),
    args: [],
    env: { PORT: String(port), KMS_DATA_PATH: dataDir, KMS_REGION: region },
    scratch: dataDir,
    readyWhen: async () => (await call('ListKeys', {})) !== undefined,
  })
  return {
    url,
    region,
    env,
    call,
    stop: async () => {
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
