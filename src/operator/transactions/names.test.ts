import { expect, test } from 'vitest'
import { lowerCase } from '../../lib/chain-types.ts'
import { laneKey, parseLaneKey, placeName } from './names.ts'

const address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'

test('a lane is one whatever the case of its address, and people are told of it with its checksum', () => {
  const key = laneKey({ chainId: 1, address })
  expect(laneKey({ chainId: 1, address: lowerCase(address) })).toBe(key)
  expect(parseLaneKey(key)).toEqual({ chainId: 1, address })
  expect(laneKey(parseLaneKey(key))).toBe(key)
  expect(placeName(parseLaneKey(key), 7)).toBe(placeName({ chainId: 1, address: lowerCase(address) }, 7))
})

test('what is no address stays as it is', () => {
  expect(parseLaneKey('1/0x12')).toEqual({ chainId: 1, address: '0x12' })
})
