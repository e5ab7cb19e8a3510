/** What a person has to mend: it is printed as one line, without a stack. */
export class InspectError extends Error {
  override readonly name = 'InspectError'
  /** It may pass by itself: the API server is away, or asks to wait. */
  readonly passes: boolean

  constructor(message: string, { passes = false }: { readonly passes?: boolean } = {}) {
    super(message)
    this.passes = passes
  }
}
