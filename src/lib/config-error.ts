/** A configuration that can't be used. The message is one line that says which file or flag, which field, and what to write; nothing else is shown of it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** Of a failed call to the system: `ENOENT`, `EISDIR`, `EACCES` … */
export const systemCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown error'
