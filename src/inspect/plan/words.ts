import { oneLine, type Paint } from '../output.ts'
import type { FieldChange, Plan, PlannedResource, Said } from './planned.ts'

const marks = { create: '+', change: '~', unchanged: '=', refused: '!', skipped: '-', unknown: '?' } as const
const colors = { create: 'green', change: 'yellow', unchanged: 'dim', refused: 'red', skipped: 'dim', unknown: 'yellow' } as const

/** A plan for people: each resource with what comes of it, in the order of the files, and a line that sums it up. */
export function inWords(plan: Plan, paint: Paint): string {
  const { resources, server, operatorSuspended, summary } = plan
  const head = [
    server === null
      ? 'No cluster was asked: the manifests are judged by the rules of this version alone.'
      : `Asked ${server}, which has tried each object (dry run). Nothing was written.`,
    ...(operatorSuspended === true ? [paint('yellow', 'The operator is suspended: nothing is signed until that is taken back.')] : []),
  ]
  return `${head.join('\n')}\n\n${resources.map((one) => `${block(one, paint)}\n`).join('')}${lastLine(summary)}\n`
}

function block(resource: PlannedResource, paint: Paint): string {
  const { action, kind, namespace, name, source } = resource
  const place = oneLine(`${namespace === undefined ? '' : `${namespace}/`}${name === '' ? '(no name)' : name}`)
  const title = `${paint(colors[action], `${marks[action]} ${action.padEnd(9)}`)} ${oneLine(kind)} ${place}  ${paint('dim', `(${oneLine(source)})`)}`
  return [title, ...details(resource, paint)].map((line) => `${line}\n`).join('')
}

function details(resource: PlannedResource, paint: Paint): readonly string[] {
  const { changes, does, moves, fees, policy, limits, approvals, refusals, waits, unknown } = resource
  const line = (label: string, text: string, color?: 'green' | 'yellow' | 'red' | 'dim'): string => {
    const told = `${label.padEnd(9)} ${oneLine(text)}`
    return `    ${color === undefined ? told : paint(color, told)}`
  }
  return [
    ...refusals.map((said) => line('refused', sayingOf(said), 'red')),
    ...changes.map((change) => line('changes', changeOf(change), 'yellow')),
    ...does.map((text) => line('does', text)),
    ...(moves === undefined ? [] : [line(moves.is, movementOf(moves))]),
    ...(fees === undefined ? [] : [line('fees', feesOf(fees))]),
    ...policy.filter(({ says }) => says !== 'refuses').map(({ signer, message }) => line('policy', `StakingSigner ${signer}: ${message}`)),
    ...limits.map(({ signer, allows, used, leftAfter, freesAt }) =>
      line(
        'limit',
        `StakingSigner ${signer}: ${allows}; ${used === undefined ? 'what is used is not known' : `${used} used${freesAt === undefined ? '' : ` (the first until ${freesAt})`}, ${leftAfter} left after this`}`,
      ),
    ),
    ...approvals.map((text) => line('approval', text, 'yellow')),
    ...waits.map((said) => line('waits', sayingOf(said), 'yellow')),
    ...unknown.map((text) => line('unknown', text, 'dim')),
  ]
}

const sayingOf = ({ by, reason, message }: Said): string =>
  by === 'operator'
    ? `${reason === undefined ? '' : `${reason}: `}${message}`
    : by === 'API server'
      ? `by the API server: ${message}`
      : message

const shown = (value: unknown): string => (value === undefined ? '(nothing)' : typeof value === 'string' ? value : JSON.stringify(value))
const changeOf = ({ field, from, to }: FieldChange): string => `${field}: ${shown(from)} → ${shown(to)}`

function movementOf({ amount, network, signer, from, to, returnsTo, is }: NonNullable<PlannedResource['moves']>): string {
  const who = `StakingSigner ${signer}${from === undefined ? '' : ` (${from})`}`
  const where = returnsTo === undefined ? '' : `; it ${is === 'pays' ? 'returns' : 'comes'} to ${returnsTo}`
  return is === 'pays'
    ? `${amount} on ${network} from ${who}${to === undefined ? '' : ` to ${to}`}${where}`
    : `for ${amount} on ${network}, by ${who}${where}`
}

const feesOf = ({ now, atMost, cap }: NonNullable<PlannedResource['fees']>): string =>
  `${now === undefined ? 'not known now' : `about ${now} now`}, at most ${atMost === undefined ? `by the cap of ${cap}` : `${atMost} (${cap})`}`

function lastLine({ create, change, unchanged, refused, skipped, waiting, notAllKnown, pays }: Plan['summary']): string {
  const counted = [
    `${create} to create`,
    `${change} to change`,
    `${unchanged} unchanged`,
    `${refused} refused`,
    ...(skipped === 0 ? [] : [`${skipped} skipped`]),
  ]
  const besides = [
    ...(waiting === 0 ? [] : [`${waiting} would wait`]),
    ...(notAllKnown === 0 ? [] : [`of ${notAllKnown} not all is known`]),
  ]
  const money = pays.length === 0 ? 'Nothing is paid.' : `Pays ${pays.join(' and ')}.`
  return `Plan: ${counted.join(', ')}${besides.length === 0 ? '' : ` (${besides.join('; ')})`}. ${money}`
}
