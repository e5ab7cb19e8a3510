import type { SolanaNetworkConfig } from '../../chains/solana/networks.ts'
import { epochInfo } from '../../chains/solana/rpc-formats.ts'
import { type RpcCall, RpcFailure } from '../../lib/json-rpc.ts'
import { isNotServed } from './ethereum-node.ts'
import { type Finding, failed, ok, saying, warning } from './finding.ts'

/** The stake program's configuration of old, and the System program: accounts of every cluster. */
const systemProgram = '11111111111111111111111111111111'
const voteProgram = 'Vote111111111111111111111111111111111111111'
/** 64 bytes of zeros in base58. */
const noSignature = '1'.repeat(64)
/** A message that the System program would sign, with a blockhash of zeros and without an instruction: it has a fee in no block. */
const noMessage = Buffer.concat([Buffer.from([1, 0, 0, 1]), Buffer.alloc(32), Buffer.alloc(32), Buffer.from([0])]).toString('base64')

/** Looks at one node alone, with calls that change nothing. */
export async function lookAtSolanaNode(
  config: SolanaNetworkConfig,
  node: number,
  call: RpcCall,
  signal: AbortSignal,
): Promise<{ readonly findings: readonly Finding[]; readonly slot: bigint | undefined }> {
  const about = `${config.name}, node ${node}`
  const findings: Finding[] = []
  let slot: bigint
  try {
    const genesis = await call('getGenesisHash', [], signal)
    if (genesis !== config.genesisHash)
      return {
        findings: [
          failed(
            'node',
            about,
            `its genesis is ${String(genesis).slice(0, 44)}, and ${config.name} has ${config.genesisHash}: it serves another cluster`,
          ),
        ],
        slot: undefined,
      }
    const info = epochInfo.parse(await call('getEpochInfo', [{ commitment: 'confirmed' }], signal))
    slot = info.absoluteSlot
    findings.push(ok('node', about, `it serves the cluster, slot ${slot}, epoch ${info.epoch}`))
  } catch (error) {
    return {
      findings: [failed('node', about, `it does not answer: ${saying(error)}. Check its URL in the networks file`)],
      slot: undefined,
    }
  }
  const health = await call('getHealth', [], signal).catch(saying)
  if (health !== 'ok') findings.push(warning('node', about, `it says of itself that it is not healthy: ${String(health).slice(0, 200)}`))
  const methods: readonly (readonly [method: string, params: readonly unknown[], hint?: string])[] = [
    ['getLatestBlockhash', [{ commitment: 'confirmed' }]],
    ['getBlockHeight', [{ commitment: 'finalized' }]],
    ['getAccountInfo', [systemProgram, { encoding: 'base64', commitment: 'confirmed' }]],
    ['getBalance', [systemProgram, { commitment: 'confirmed' }]],
    ['getMultipleAccounts', [[systemProgram], { encoding: 'base64', commitment: 'confirmed' }]],
    ['getSignatureStatuses', [[noSignature], { searchTransactionHistory: true }], '--enable-rpc-transaction-history'],
    ['getSignaturesForAddress', [voteProgram, { limit: 1 }], '--enable-rpc-transaction-history'],
    [
      'getTransaction',
      [noSignature, { commitment: 'finalized', encoding: 'base64', maxSupportedTransactionVersion: 0 }],
      '--enable-rpc-transaction-history',
    ],
    ['getFirstAvailableBlock', []],
    ['getMinimumBalanceForRentExemption', [200]],
    ['getStakeMinimumDelegation', []],
    ['getRecentPrioritizationFees', [[]]],
    ['getVoteAccounts', [{ votePubkey: systemProgram }], '--full-rpc-api'],
    ['getFeeForMessage', [noMessage, { commitment: 'confirmed' }]],
    // No bytes are no transaction: whatever serves the methods refuses them.
    ['simulateTransaction', ['', { encoding: 'base64', sigVerify: false }]],
    ['sendTransaction', ['', { encoding: 'base64' }]],
  ]
  for (const [method, params, hint] of methods) {
    try {
      await call(method, params, signal)
    } catch (error) {
      const flag = hint === undefined ? '' : ` (${hint})`
      if (isNotServed(error) || hint !== undefined)
        findings.push(
          failed(
            'node',
            about,
            `it does not serve ${method}${flag}: ${saying(error)}. Have it served, or add an RPC URL of a node that does`,
          ),
        )
      else if (!(error instanceof RpcFailure) || error.kind !== 'node') findings.push(warning('node', about, `${method}: ${saying(error)}`))
    }
  }
  return { findings, slot }
}
