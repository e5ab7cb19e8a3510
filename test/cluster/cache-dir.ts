import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/** The user's cache of this project: `$XDG_CACHE_HOME/staking-operator`, or `~/.cache/staking-operator`. */
export function cacheDir(env: Readonly<Record<string, string | undefined>>): string {
  const base = env.XDG_CACHE_HOME
  // The XDG base directory specification has relative paths ignored.
  return join(base !== undefined && isAbsolute(base) ? base : join(env.HOME ?? homedir(), '.cache'), 'staking-operator')
}
