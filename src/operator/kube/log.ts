type Write = (fields: Record<string, unknown>, message: string) => void

/** The part of pino that the runtime uses. Fields never hold bodies, tokens or URLs with credentials. */
export interface KubeLog {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}

const nothing: Write = () => {}
export const silentLog: KubeLog = { debug: nothing, info: nothing, warn: nothing, error: nothing }
