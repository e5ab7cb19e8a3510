import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Asset {
  readonly name: string
  readonly type: string
  readonly content: Buffer
}

/** Starts the page. A file of its own: the page's policy permits no script within it. */
const start = `'use strict'
window.SwaggerUIBundle({
  url: document.querySelector('link[rel="service-desc"]').href,
  dom_id: '#api',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  persistAuthorization: false,
  validatorUrl: null,
  presets: [window.SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
})
`

const style = `:root { color-scheme: light }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #1f2328; background: #fff }
main { max-width: 44rem; margin: 3rem auto; padding: 0 1.5rem }
h1 { font-size: 1.6rem; line-height: 1.25 }
code { font: 0.9em ui-monospace, monospace; background: #f1f3f5; border-radius: 4px; padding: 0.1em 0.3em }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: 0.4rem 0.8rem 0.4rem 0; border-bottom: 1px solid #e3e6ea; vertical-align: top }
a { color: #0b57a4 }
nav { max-width: 1460px; margin: 0 auto; padding: 1rem 20px 0 }
nav a { margin-right: 1.5rem }
`

const fromPackage = (name: string): Buffer => readFileSync(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`)))

/** What the pages are made of, read once; the version changes with any of it, and so do the paths under which it is served. */
export function loadAssets(): { readonly version: string; readonly files: ReadonlyMap<string, Asset> } {
  const assets: readonly Asset[] = [
    { name: 'swagger-ui-bundle.js', type: 'text/javascript; charset=utf-8', content: fromPackage('swagger-ui-bundle.js') },
    { name: 'swagger-ui.css', type: 'text/css; charset=utf-8', content: fromPackage('swagger-ui.css') },
    { name: 'favicon-32x32.png', type: 'image/png', content: fromPackage('favicon-32x32.png') },
    { name: 'start.js', type: 'text/javascript; charset=utf-8', content: Buffer.from(start) },
    { name: 'pages.css', type: 'text/css; charset=utf-8', content: Buffer.from(style) },
  ]
  const hash = createHash('sha256')
  for (const { name, content } of assets) hash.update(name).update(content)
  return { version: hash.digest('hex').slice(0, 16), files: new Map(assets.map((asset) => [asset.name, asset])) }
}
