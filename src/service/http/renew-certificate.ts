import type { Clock } from '../../lib/clock.ts'
import { ConfigError } from '../../lib/config-error.ts'
import type { Logger } from '../../lib/log.ts'
import { type Certificate, type CertificateFiles, readCertificate } from './certificate.ts'

/** How often the files are looked at. A changed Secret takes Kubernetes longer than that to mount. */
export const certificateLookMs = 30_000
/** Certificate and key may be written one after the other: a pair that doesn't fit is read once more after so long. */
const settleMs = 1_000

export interface RenewalDeps {
  readonly files: CertificateFiles
  /** What is shown at first. */
  readonly first: Certificate
  /** Shows another one to whoever connects from now on. */
  readonly show: (certificate: Certificate) => void
  readonly clock: Clock
  readonly log: Logger
  readonly lookMs: number
}

/**
 * Looks at the files of a certificate until the signal is aborted, and shows what is in them. What can't be used is told once, for as long as it is the
 * same mistake, and the certificate from before goes on being shown. Never throws.
 */
export async function renewCertificate(deps: RenewalDeps, signal: AbortSignal): Promise<void> {
  const { files, show, clock, log, lookMs } = deps
  let shown = deps.first
  let toldMistake: string | undefined
  let toldExpired: string | undefined
  const tellExpired = () => {
    if (shown.validTo > clock.now() || toldExpired === shown.fingerprint) return
    toldExpired = shown.fingerprint
    log.error({ certFile: files.certFile, ...summary(shown) }, 'the certificate of the staking API has expired: clients refuse it')
  }
  tellExpired()
  while (await slept(clock, lookMs, signal)) {
    let found = await attempt(files)
    if (found instanceof Error && (await slept(clock, settleMs, signal))) found = await attempt(files)
    if (signal.aborted) return
    if (!(found instanceof Error)) found = isSame(found, shown) ? shown : tried(found)
    if (found instanceof Error) {
      if (found.message !== toldMistake)
        log.error(
          { reason: found.message, ...summary(shown) },
          'the renewed certificate of the staking API cannot be used: the one from before is shown',
        )
      toldMistake = found.message
    } else {
      if (found !== shown) log.info(summary(found), 'the staking API shows a renewed certificate')
      else if (toldMistake !== undefined) log.info(summary(found), 'the files hold the certificate again that the staking API shows')
      toldMistake = undefined
      shown = found
    }
    tellExpired()
  }

  function tried(certificate: Certificate): Certificate | Error {
    const now = clock.now()
    if (certificate.validTo <= now && shown.validTo > now)
      return new Error(`tls.certFile: the certificate in ${files.certFile} has expired (${certificate.validTo.toISOString()})`)
    try {
      show(certificate)
      return certificate
    } catch (error) {
      return asError(error)
    }
  }
}

const summary = ({ names, validTo, fingerprint }: Certificate) => ({ names, validTo: validTo.toISOString(), fingerprint })

const isSame = (one: Certificate, other: Certificate): boolean => one.chain === other.chain && one.key.reveal() === other.key.reveal()

const attempt = (files: CertificateFiles): Promise<Certificate | Error> => readCertificate(files).catch((error: unknown) => asError(error))

/** Only of ours is it known that nothing of a key is in its text. */
const asError = (error: unknown): Error => (error instanceof ConfigError ? error : new Error('the TLS library refuses it'))

/** @returns false when the signal was aborted */
const slept = (clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> =>
  clock.sleep(ms, signal).then(
    () => true,
    () => false,
  )
