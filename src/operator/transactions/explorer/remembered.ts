/** What a function says of a key, computed once. */
export const remembered = <T>() => {
  const answers = new Map<number, T>()
  return (key: number, compute: () => T): T => {
    const known = answers.get(key)
    if (known !== undefined) return known
    const answer = compute()
    answers.set(key, answer)
    return answer
  }
}
