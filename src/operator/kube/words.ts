import { createPool } from './pool.ts'

/** Texts in one dictionary, and shapes. A new one begins where one is full: what is packed keeps its own. */
const MOST_WORDS = 4096
const MOST_SHAPES = 512
const LONGEST_WORD = 1024
/** Texts of which is remembered who had them. */
const REMEMBERED = 512

/** How an object is built: of objects and arrays, down to its texts and numbers, which stand elsewhere in the order in which they come here. */
export type Shape =
  | { readonly is: 'text' | 'number' }
  | { readonly is: 'constant'; readonly value: boolean | null }
  | { readonly is: 'array'; readonly items: readonly Shape[] }
  | { readonly is: 'object'; readonly keys: readonly string[]; readonly values: readonly Shape[] }

/** What many objects have in common: texts by their number, and how they are built. */
export interface Words {
  readonly list: string[]
  readonly numbers: Map<string, number>
  readonly shapes: Map<string, Shaped>
}
/** A shape, and the dictionary that objects of this shape are packed with. */
export interface Shaped {
  readonly words: Words
  readonly shape: Shape
}

export interface Dictionary {
  /** The one that objects are packed with now. */
  current(): Words
  /** The number of a text that several objects have; undefined for what only `of` has had so far, as an id. */
  numberOf(words: Words, text: string, of: string): number | undefined
}

/** Learns what several objects have in common: a text is taken in when the second one has it. */
export function createDictionary(): Dictionary {
  const fresh = (): Words => ({ list: [], numbers: new Map(), shapes: new Map() })
  let words = fresh()
  const had = createPool<string>(REMEMBERED)
  return {
    current() {
      if (words.list.length >= MOST_WORDS || words.shapes.size >= MOST_SHAPES) words = fresh()
      return words
    },
    numberOf({ list, numbers }, text, of) {
      const known = numbers.get(text)
      if (known !== undefined) return known
      if (text.length > LONGEST_WORD || had.share(text, of) === of) return undefined
      numbers.set(text, list.length)
      return list.push(text) - 1
    },
  }
}
