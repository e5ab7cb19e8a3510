import { CANCEL, callOf, FOREIGN, purposeOf } from './codes.ts'

/** Everything that can happen, as a number that a state's trace keeps, and in words. */
export type Action = number
export const actionKinds = [
  'createRecord',
  'handOver',
  'decide',
  'goOn',
  'follow',
  'createPlace',
  'namePlace',
  'readOwner',
  'tell',
  'send',
  'resume',
  'bump',
  'cancel',
  'fill',
  'makeHole',
  'makeAgain',
  'conclude',
  'takeBack',
  'crash',
  'refreshRecords',
  'refreshPlaces',
  'refreshOwners',
  'prune',
  'pruneRecord',
  'handDelete',
  'mine',
  'reorg',
  'finalize',
  'foreign',
  'drop',
  'owner',
  'node',
  'backup',
  'setBack',
  'rotate',
  'acknowledge',
  'importPlace',
  'importRecord',
  'dropLedger',
  'shown',
  'catchUp',
] as const
export type ActionKind = (typeof actionKinds)[number]
const kindNumbers = new Map(actionKinds.map((kind, index) => [kind, index]))
export const action = (kind: ActionKind, leader = 0, a = 0, b = 0, c = 0): Action =>
  ((kindNumbers.get(kind) ?? 0) << 16) | (leader << 14) | (a << 8) | (b << 4) | c
export const partsOf = (of: Action) => ({
  kind: actionKinds[of >> 16] ?? 'decide',
  leader: (of >> 14) & 3,
  a: (of >> 8) & 63,
  b: (of >> 4) & 15,
  c: of & 15,
})

const codeWords = (code: number): string =>
  code === CANCEL
    ? 'a cancel'
    : code === FOREIGN
      ? "another user's transaction"
      : code >= 9
        ? `the call of purpose ${code - 9}, reverted`
        : code === 0
          ? 'nothing'
          : `the call of purpose ${purposeOf(code)} (version ${code - callOf(purposeOf(code), 0) + 1})`
const ownerWords = ['absent', 'active', 'suspended', 'deleted']

/** An action in words, for a trace. */
export function describe(of: Action): string {
  const { kind, leader, a, b, c } = partsOf(of)
  const who = `leader ${leader === 0 ? 'A' : 'B'}`
  const where = `lane ${a} nonce ${b}`
  switch (kind) {
    case 'createRecord':
      return `${who} creates the record of purpose ${b} for owner ${a}${c === 1 ? ': it is there already, and read' : ''}`
    case 'handOver':
      return `${who} hands the record of purpose ${b} over to owner ${a}${c === 1 ? ': conflict' : ''}`
    case 'decide':
      return `${who} decides: purpose ${c} takes ${where} (everything is read)`
    case 'goOn':
      return `${who} goes on with the place at ${where}, taken for purpose ${c}`
    case 'follow':
      return `${who} lets the record follow ${codeWords(c)} at ${where}, which a witness knows`
    case 'createPlace':
      return `${who} creates the place at ${where}${c === 1 ? ': it is there already, and read' : ''}`
    case 'namePlace':
      return `${who} writes the place at ${where} and the first version into the record${c === 1 ? ': conflict' : ''}`
    case 'readOwner':
      return `${who} reads the owner again: ${c === 1 ? 'it may not be signed' : 'it may be signed'}`
    case 'tell':
      return `${who} tells the staking API of ${codeWords(c)} at ${where}`
    case 'send':
      return `${who} sends ${codeWords(c)} at ${where}`
    case 'resume':
      return `${who} goes on with ${codeWords(c)} at ${where}, which a node lacks`
    case 'bump':
      return `${who} writes ${codeWords(c)} at ${where} into the record`
    case 'cancel':
      return `${who} writes a cancel at ${where} into the record${c === 1 ? ': conflict' : ''}`
    case 'fill':
      return `${who} sends 0 wei to the signer itself at ${where}`
    case 'makeHole':
      return `${who} makes a filler's place at ${where}${c === 1 ? ': it is there already, and read' : ''}`
    case 'makeAgain':
      return `${who} makes the place at ${where} again, which a record names`
    case 'conclude':
      return `${who} concludes from ${codeWords(c)} at ${where}`
    case 'takeBack':
      return `${who} takes the outcome back: nothing at ${where} is final`
    case 'crash':
      return `${who} crashes and starts again`
    case 'refreshRecords':
      return `${who}'s cache of records catches up`
    case 'refreshPlaces':
      return `${who}'s cache of places catches up`
    case 'refreshOwners':
      return `${who}'s cache of owners catches up`
    case 'prune':
      return `${who} prunes the place at ${where}`
    case 'pruneRecord':
      return `the record of purpose ${a} is pruned`
    case 'handDelete':
      return `somebody deletes the place at ${where} by hand`
    case 'mine':
      return `chain: ${where} is used by ${codeWords(c)}`
    case 'reorg':
      return `chain: a reorg opens ${where} again`
    case 'finalize':
      return `chain: ${where} is final (${codeWords(c)})`
    case 'foreign':
      return `another user of the key sends at ${where}`
    case 'drop':
      return `node ${a}'s pool forgets everything`
    case 'owner':
      return `owner ${a} is ${ownerWords[b] ?? ''}`
    case 'node':
      return `node ${a} is ${['healthy', 'lagging', 'down', 'saying its pending count for every count', 'on another fork'][b] ?? ''}`
    case 'backup':
      return 'etcd is backed up'
    case 'setBack':
      return 'etcd is set back to the backup'
    case 'rotate':
      return 'the signer gets another key (lane 1)'
    case 'importPlace':
      return `${who} makes the place at ${where} for what the ledger has`
    case 'importRecord':
      return `${who} writes what the ledger has at ${where} into the record`
    case 'dropLedger':
      return `${who} takes the ledger away: all of it is in the log`
    case 'catchUp':
      return `${who} reads the whole log past its caches`
    case 'shown':
      return `the pools come to hold what the ledger has at ${where}`
    case 'acknowledge':
      return `a person acknowledges what lane ${a} shows below nonce ${b}`
  }
}
