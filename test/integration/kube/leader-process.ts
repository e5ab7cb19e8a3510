import { existsSync } from 'node:fs'
import { systemClock } from '../../../src/lib/clock.ts'
import { createKubeApi } from '../../../src/operator/kube/api.ts'
import { isConflict } from '../../../src/operator/kube/errors.ts'
import { createLeaderElector, LeaseLost } from '../../../src/operator/kube/leader-election.ts'
import { type Lease, leases } from '../../../src/operator/kube/lease.ts'
import { widgetClient } from './widgets.ts'

/**
 * A leader about to act, for a test to freeze: it reads the widget, then waits, without ever returning to its event loop (so none of its timers runs),
 * until the file is there, and acts. Prints READY, then REFUSED or ACTED for the check before the effect, CONFLICT or WRITTEN for a write without it,
 * and LOST or STOPPED for how its leadership ended.
 */
const [kubeconfigPath = '', leaseName = '', widgetName = '', goFile = ''] = process.argv.slice(2)
const api = createKubeApi({ kubeconfigPath, clock: systemClock, userAgent: 'leader-process' })
const elector = createLeaderElector({
  client: api.resource<Lease>(leases),
  namespace: 'default',
  name: leaseName,
  identity: 'frozen',
  leaseDurationMs: 8_000,
  renewDeadlineMs: 5_000,
  retryPeriodMs: 500,
  clock: systemClock,
})
const say = (word: string): void => {
  process.stdout.write(`${word}\n`)
}

let writing: Promise<void> | undefined
const end = await elector.run(
  {
    onStartedLeading: async (leading) => {
      const client = widgetClient(api)
      const ref = { namespace: 'default', name: widgetName }
      const { metadata } = await client.get(ref, leading)
      elector.assertHeld()
      say('READY')
      const cell = new Int32Array(new SharedArrayBuffer(4))
      for (let turn = 0; turn < 6_000 && !existsSync(goFile); turn++) Atomics.wait(cell, 0, 0, 10)
      try {
        elector.assertHeld()
        say('ACTED')
      } catch (error) {
        say(error instanceof LeaseLost ? 'REFUSED' : String(error))
      }
      const options = { resourceVersion: metadata.resourceVersion, subresource: 'status' as const }
      writing = client.mergePatch(ref, { status: { note: 'frozen' } }, options, AbortSignal.timeout(60_000)).then(
        () => say('WRITTEN'),
        (error: unknown) => say(isConflict(error) ? 'CONFLICT' : String(error)),
      )
      await writing
    },
  },
  AbortSignal.timeout(180_000),
)
say(end === 'lost' ? 'LOST' : 'STOPPED')
// Leadership that is lost doesn't wait for what is still going on.
await writing
await api.close()
