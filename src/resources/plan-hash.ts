import { z } from 'zod'

/** A plan's hash as text. */
export const planHashText = () =>
  z
    .string()
    .length(64)
    .regex(/^[0-9a-f]{64}$/)
