import { expect, test } from 'vitest'
import { parseTarget } from './life.ts'

const found = (text: string) => {
  const { kinds, name } = parseTarget(text)
  return `${kinds.length === 1 ? kinds[0]?.kind : 'any'} ${name}`
}

test.each([
  ['validator-1', 'any validator-1'],
  ['a.b', 'any a.b'],
  ['ethstake/a.b', 'EthereumStake a.b'],
  ['EthereumStakes/x', 'EthereumStake x'],
  // What `kubectl get -o name` prints.
  ['ethereumstake.staking.dev/x', 'EthereumStake x'],
  ['validatorexits.v1alpha1.staking.dev/x', 'ValidatorExit x'],
])('%s is %s', (text, is) => {
  expect(found(text)).toBe(is)
})

test.each([
  'pod/x',
  'ethereumstake.apps/x',
  'ethereumstake.v2.staking.dev/x',
  'ethereumstake./x',
  '/x',
  'ethstake/',
  'a/b/c',
  '.staking.dev/x',
])('%s is none', (text) => {
  expect(() => parseTarget(text)).toThrow(/is not NAME or KIND\/NAME|is no kind of this/)
})
