import { inspect } from 'node:util'

/**
 * A text that must never be shown: it prints, serialises and inspects as `[secret]`, so that a log line, an error or a JSON body
 * that catches it by accident says nothing. Only `reveal()` gives the text, at the one place that uses it.
 */
export class Secret {
  readonly #text: string
  constructor(text: string) {
    this.#text = text
  }
  reveal(): string {
    return this.#text
  }
  toString(): string {
    return '[secret]'
  }
  toJSON(): string {
    return '[secret]'
  }
  [inspect.custom](): string {
    return '[secret]'
  }
}
