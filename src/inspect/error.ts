/** What a person has to mend: it is printed as one line, without a stack. */
export class InspectError extends Error {
  override readonly name = 'InspectError'
}
