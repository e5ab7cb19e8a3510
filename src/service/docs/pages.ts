import { problemHelp } from '../../contract/problem-help.ts'
import { type ProblemCode, problemCodes, problems } from '../../contract/problems.ts'

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`).replace(/`([^`]+)`/g, '<code>$1</code>')

/**
 * @param root The way from the page to the service's root, so that the pages work below a path of a proxy's.
 * @param assets The folder of the assets, from the root.
 */
interface Place {
  readonly root: string
  readonly assets: string
}

const page = ({ root, assets }: Place, { title, head = '', body }: { title: string; head?: string; body: string }): string =>
  `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<link rel="icon" href="${root}${assets}/favicon-32x32.png">
<link rel="stylesheet" href="${root}${assets}/pages.css">
${head}
${body}
</html>
`

/** The API's reference, drawn from its document. */
export const referencePage = (place: Place): string => {
  const { root, assets } = place
  return page(place, {
    title: 'Staking API',
    head: `<link rel="service-desc" href="${root}openapi.json">
<link rel="stylesheet" href="${root}${assets}/swagger-ui.css">
<script src="${root}${assets}/swagger-ui-bundle.js" defer></script>
<script src="${root}${assets}/start.js" defer></script>`,
    body: `<nav><a href="${root}openapi.json">openapi.json</a><a href="${root}problems">Problems</a></nav>
<div id="api"></div>
<noscript>The reference needs JavaScript; <a href="${root}openapi.json">openapi.json</a> is the same as a document.</noscript>`,
  })
}

/** Every problem in a table. */
export const problemsPage = (place: Place): string => {
  const rows = problemCodes.map(
    (code) =>
      `<tr><td><a href="${place.root}problems/${code}"><code>${code}</code></a><td>${problems[code].status}<td>${escaped(problems[code].title)}`,
  )
  return page(place, {
    title: 'Problems of the staking API',
    body: `<main><h1>Problems of the staking API</h1>
<p>Errors are <code>application/problem+json</code> (RFC 9457); <code>type</code> leads to one of these pages.
<table><tr><th>code<th>status<th>title
${rows.join('\n')}
</table>
<p><a href="${place.root}docs">The API's reference</a></main>`,
  })
}

/** What a problem means and what to do: where its `type` leads. */
export const problemPage = (place: Place, code: ProblemCode): string => {
  const { means, todo } = problemHelp[code]
  const { status, title } = problems[code]
  return page(place, {
    title,
    body: `<main><h1>${escaped(title)}</h1>
<p><code>${code}</code>, status ${status}
<h2>What it means</h2><p>${escaped(means)}
<h2>What to do</h2><p>${escaped(todo)}
<p><a href="${place.root}problems">All problems</a> · <a href="${place.root}docs">The API's reference</a></main>`,
  })
}
