import { describe, expect, test } from 'vitest'
import { style } from './style.ts'

/** The custom properties of a block of the style sheet. */
const coloursIn = (block: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...block.matchAll(/--([a-z-]+): (#[0-9a-f]{3,6})/g)].map(([, name = '', colour = '']) => [name, colour]))
const [light = '', rest = ''] = style.split('@media (prefers-color-scheme: dark)')
const schemes = { light: coloursIn(light), dark: coloursIn(rest.slice(0, rest.indexOf('* {'))) }

/** Relative luminance. Source: WCAG 2.2, "relative luminance". */
function luminance(colour: string): number {
  const digits = colour.length === 4 ? [...colour.slice(1)].map((digit) => digit + digit) : (colour.slice(1).match(/../g) ?? [])
  const [red = 0, green = 0, blue = 0] = digits.map((pair) => {
    const value = Number.parseInt(pair, 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
function contrast(a: string, b: string): number {
  const [lighter = 0, darker = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x)
  return (lighter + 0.05) / (darker + 0.05)
}

const kinds = ['good', 'bad', 'warn', 'busy', 'calm']
const pairs = [
  ...['text', 'soft', 'link'].flatMap((ink) => ['ground', 'panel'].map((ground) => [ink, ground] as const)),
  ...kinds.flatMap((kind) => [[kind, `${kind}-ground`] as const, ['text', `${kind}-ground`] as const]),
  ['panel', 'link'] as const,
]

describe.each(['light', 'dark'] as const)('in the %s scheme', (scheme) => {
  test.each(pairs)('%s on %s can be read: 4.5 to 1 or more', (ink, ground) => {
    const { [ink]: a = '', [ground]: b = '' } = schemes[scheme]
    expect([a, b]).not.toContain('')
    expect(contrast(a, b)).toBeGreaterThanOrEqual(4.5)
  })
})

test('nothing is fetched from anywhere', () => {
  expect(style).not.toMatch(/url\(|@import|https?:/)
})
