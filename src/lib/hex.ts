/** Whether two texts in hex, addresses say, mean the same bytes: the case of a digit says nothing. Both with `0x`, or neither. */
export const sameHex = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()
