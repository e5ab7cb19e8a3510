/** By the statement's text. */
const names = new Map<string, string>()

/**
 * Has a server prepare a statement once for each connection, and run it by its name from then on. Only for what is asked all the time, and whose columns are all named: a
 * prepared `select *` fails when a newer version has added a column.
 * @returns The text, to be run as it is.
 */
export function prepared(name: string, text: string): string {
  names.set(text, name)
  return text
}

export const preparedName = (text: string): string | undefined => names.get(text)
