import type { Clock } from '../../lib/clock.ts'
import { isOwnHost } from './own-host.ts'
import { icon, style } from './style.ts'
import type { Views } from './views.ts'

export interface PageRequest {
  readonly method: string
  /** Path and query, as the request has them. */
  readonly url: string
  readonly host: string | undefined
}

export interface PageAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Answers what is the page's; undefined where the path is none of it. */
export type Page = (request: PageRequest) => PageAnswer | undefined

/** Views that are drawn at most, for all who look: the leader has other work. A style sheet is no view. */
const VIEWS = { burst: 30, perSecond: 5 }

/**
 * What a browser is told of each answer: nothing from elsewhere, no script, no frame, nothing kept, and nobody is told from where a link was followed. A form
 * leads to the page itself.
 */
const SECURITY: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

const answer = (status: number, type: string, body: string, headers: Readonly<Record<string, string>> = {}): PageAnswer => ({
  status,
  headers: { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store', ...SECURITY, ...headers },
  body,
})
const text = (status: number, body: string, headers?: Readonly<Record<string, string>>): PageAnswer =>
  answer(status, 'text/plain', `${body}\n`, headers)
/** For an hour: the version in its path changes with it. */
const kept = (type: string, body: string): PageAnswer => answer(200, type, body, { 'cache-control': 'private, max-age=3600' })

/** The segments below `/ui/`, decoded; undefined where they can't be. */
function segmentsOf(path: string): readonly string[] | undefined {
  try {
    return path.slice('/ui/'.length).split('/').map(decodeURIComponent)
  } catch {
    return undefined
  }
}

/**
 * The web page: GET and HEAD below `/ui/`, from the operator's memory. No view asks the API server or a node for anything.
 * @param onFailure is told what a view has thrown; who looks is not
 */
export function createPage(deps: {
  readonly views: Views
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly onFailure: (error: unknown) => void
}): Page {
  const { views, clock, onFailure } = deps
  let left = VIEWS.burst
  let at = clock.monotonicMs()

  /** Whether one more view may be drawn now. */
  function mayDraw(): boolean {
    const now = clock.monotonicMs()
    left = Math.min(VIEWS.burst, left + ((now - at) / 1_000) * VIEWS.perSecond)
    at = now
    if (left < 1) return false
    left--
    return true
  }

  function draw(segments: readonly string[], query: URLSearchParams): PageAnswer {
    const [first = '', ...rest] = segments
    const drawn =
      first === '' && rest.length === 0
        ? views.fleet(query)
        : first === 'signers' && rest.length === 0
          ? views.signers(query)
          : first === 'signers' && rest.length === 1
            ? views.signer(rest[0] ?? '')
            : first === 'resources' && rest.length === 3
              ? views.resource({ kind: rest[0] ?? '', namespace: rest[1] ?? '', name: rest[2] ?? '' })
              : undefined
    return drawn === undefined ? answer(404, 'text/html', views.missing(segments.length - 1)) : answer(200, 'text/html', drawn)
  }

  return ({ method, url, host }) => {
    const [path = '', search = ''] = splitQuery(url)
    if (path !== '/ui' && path !== '/' && !path.startsWith('/ui/')) return undefined
    if (method !== 'GET' && method !== 'HEAD') return text(405, 'This page only reads: GET and HEAD.', { allow: 'GET, HEAD' })
    if (!isOwnHost(host))
      return text(421, 'This page answers to an IP address, localhost and names of Services only: let your proxy send such a Host header.')
    // Relative, so that it leads to the same place below a path of a proxy's.
    if (path === '/' || path === '/ui') return text(308, 'The page is at ui/.', { location: 'ui/' })
    if (path === '/ui/style.css') return kept('text/css', style)
    if (path === '/ui/icon.svg') return kept('image/svg+xml', icon)
    const segments = segmentsOf(path)
    if (segments === undefined) return text(400, 'The path can not be read.')
    if (!mayDraw()) return text(429, 'Too many views are asked for at once. Try again in a moment.', { 'retry-after': '1' })
    try {
      return draw(segments, new URLSearchParams(search))
    } catch (error) {
      onFailure(error)
      return text(500, 'The page could not be drawn: the log of the operator says why.')
    }
  }
}

function splitQuery(url: string): readonly [string, string] {
  const at = url.indexOf('?')
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)]
}
