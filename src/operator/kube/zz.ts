import { kinds } from '../../resources/kinds.ts'
import { keccak256 } from 'viem'
export const x = [kinds, keccak256]
