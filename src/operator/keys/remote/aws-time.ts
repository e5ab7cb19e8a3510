import type { Instant } from '../../../lib/clock.ts'

/** The time as Signature Version 4 has it: 20150830T123600Z. */
export const amzDate = (at: Instant): string => at.toISOString().replace(/[:-]|\.\d{3}/g, '')
