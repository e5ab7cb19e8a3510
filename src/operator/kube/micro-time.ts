/** meta/v1 MicroTime: RFC 3339 with six decimals, or the API server refuses it. */
export const microTime = (date: Date): string => date.toISOString().replace('Z', '000Z')
