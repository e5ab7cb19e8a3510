import { scrub } from '../../lib/log.ts'

/** Markup that is safe as it stands: only `html` makes it. */
export class Html {
  readonly markup: string
  /** Not for texts: what is given here is sent as it is. */
  constructor(markup: string) {
    this.markup = markup
  }
}

/** What a template may hold: texts are escaped, markup is not, and what is absent is left out. */
export type Child = Html | string | number | undefined | readonly Child[]

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
/** Control characters, and those that turn the direction of what follows: with them a text can look like another. */
const unseen = /(?![\n\t])[\p{Cc}\p{Cf}]/gu

/** A text as it may stand between tags and in quoted attributes. URLs, API keys and tokens in it are hidden, whoever wrote it. */
export const escaped = (text: string): string =>
  scrub(text)
    .replace(unseen, '\u{fffd}')
    .replace(/[&<>"']/g, (character) => entities[character] ?? '')

const markupOf = (child: Child): string =>
  child === undefined
    ? ''
    : child instanceof Html
      ? child.markup
      : typeof child === 'object'
        ? child.map(markupOf).join('')
        : escaped(String(child))

/** A template of markup. Every value in it is escaped; in attributes, write the quotes around it. */
export const html = (parts: TemplateStringsArray, ...children: readonly Child[]): Html =>
  new Html(parts.map((part, at) => (at === 0 ? part : markupOf(children[at - 1]) + part)).join(''))

/** A text cut to so many characters, with an ellipsis. */
export const shortened = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`)
