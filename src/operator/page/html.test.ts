import { describe, expect, test } from 'vitest'
import { escaped, html, shortened } from './html.ts'

describe('a text on the page', () => {
  test.each([
    { what: 'a tag', text: '<script>alert(1)</script>', shown: '&lt;script&gt;alert(1)&lt;/script&gt;' },
    { what: 'the end of an attribute', text: '"><img src=x onerror=alert(1)>', shown: '&quot;&gt;&lt;img src=x onerror=alert(1)&gt;' },
    { what: 'a single quote', text: "' autofocus", shown: '&#39; autofocus' },
    { what: 'an entity', text: '&lt;b&gt;', shown: '&amp;lt;b&amp;gt;' },
    { what: 'a URL that may be a credential', text: 'from https://rpc.example/v3/key?x=1 on', shown: 'from https://[hidden] on' },
    { what: 'a link that runs a script', text: 'javascript:alert(1)', shown: 'javascript:alert(1)' },
    { what: 'an API key', text: `sop_${'a'.repeat(40)}`, shown: 'sop_[hidden]' },
    { what: 'a token', text: 'Bearer abcdef', shown: 'Bearer [hidden]' },
    { what: 'what turns the direction of the rest', text: 'pay \u202eelpoep', shown: 'pay \ufffdelpoep' },
    { what: 'a control character', text: 'a\u0000b\u001bc', shown: 'a\ufffdb\ufffdc' },
    { what: 'lines', text: 'a\n\tb', shown: 'a\n\tb' },
  ])('with $what is shown as a text', ({ text, shown }) => {
    expect(escaped(text)).toBe(shown)
    expect(html`<p title="${text}">${[text]}</p>`.markup).toBe(`<p title="${shown}">${shown}</p>`)
  })

  test('is cut to its length, with an ellipsis', () => {
    expect(shortened('abcdef', 6)).toBe('abcdef')
    expect(shortened('abcdefg', 6)).toBe('abcde…')
  })
})

test('markup within markup stays, and what is absent is left out', () => {
  expect(html`<ul>${[1, 'b & c'].map((one) => html`<li>${one}</li>`)}${undefined}</ul>`.markup).toBe(
    '<ul><li>1</li><li>b &amp; c</li></ul>',
  )
})
