// The site's configuration is TypeScript, which Node.js runs as it is; written so, VitePress's own bundler leaves it alone.
const { default: site } = await import(new URL('../../scripts/docs/site.ts', import.meta.url).href)

export default site
