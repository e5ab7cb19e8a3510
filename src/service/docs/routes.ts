import type { FastifyInstance, FastifyReply } from 'fastify'
import { isProblemCode } from '../../contract/problems.ts'
import { ProblemError } from '../errors.ts'
import { loadAssets } from './assets.ts'
import { problemPage, problemsPage, referencePage } from './pages.ts'

/** Nothing from elsewhere, no script or style within a page, and nobody frames it. Pictures of the library are within its style sheet. */
const policy = (...more: readonly string[]): string =>
  [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    ...more,
  ].join('; ')
const referencePolicy = policy("script-src 'self'", "connect-src 'self'")
const pagePolicy = policy()

const secured = (reply: FastifyReply, contentPolicy: string): FastifyReply =>
  reply.headers({ 'content-security-policy': contentPolicy, 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })

/** The API's reference at /docs, and a page for each problem, where its `type` leads. Without an API key: they say nothing of anybody's resources. */
export function docsRoutes(app: FastifyInstance): void {
  // Read when first asked for: most instances never are.
  let loaded: ReturnType<typeof loadAssets> | undefined
  const assets = () => {
    loaded ??= loadAssets()
    return loaded
  }
  const placeFrom = (root: string) => ({ root, assets: `docs/assets/${assets().version}` })
  const html = (reply: FastifyReply, contentPolicy: string, text: string) =>
    secured(reply, contentPolicy).header('cache-control', 'no-cache').type('text/html; charset=utf-8').send(text)

  app.get('/docs', async (_request, reply) => html(reply, referencePolicy, referencePage(placeFrom('./'))))
  app.get('/docs/', async (_request, reply) => reply.redirect('../docs', 308))
  app.get('/problems', async (_request, reply) => html(reply, pagePolicy, problemsPage(placeFrom('./'))))
  app.get<{ Params: { code: string } }>('/problems/:code', async ({ params: { code } }, reply) => {
    if (!isProblemCode(code)) throw new ProblemError('not-found', 'there is no such problem')
    return html(reply, pagePolicy, problemPage(placeFrom('../'), code))
  })
  app.get<{ Params: { version: string; name: string } }>('/docs/assets/:version/:name', async ({ params: { version, name } }, reply) => {
    const asset = version === assets().version ? assets().files.get(name) : undefined
    if (asset === undefined) throw new ProblemError('not-found', 'there is nothing at this path')
    return secured(reply, pagePolicy).header('cache-control', 'public, max-age=31536000, immutable').type(asset.type).send(asset.content)
  })
}
