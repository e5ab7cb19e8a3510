import type { Hex } from '../../../chains/ethereum/chain.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { stall } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { calldataOf, type RequestBody, typeOf } from './request-type.ts'
import type { RequestPlan } from './steps.ts'
import type { RequestTargets } from './target.ts'

/** What was asked for, and as which request of the staking API. */
type Asked = Pick<RequestPlan, 'order' | 'validator' | 'requestId'>

/** What of the service's answer is not what the spec asks for, in words. */
function mismatches(body: RequestBody, { order, validator, requestId }: Asked, { config }: EthereumNetwork): readonly string[] {
  const { unsignedTransaction: call, fee } = body
  const type = typeOf(order)
  return [
    body.requestId === requestId ? [] : ['it is another request'],
    body.externalReference === order.externalReference ? [] : ['it belongs to another resource: its external reference is another'],
    sameHex(body.pubkey, validator.pubkey) ? [] : ['the public key is another'],
    type.hasTerms(body, order) ? [] : ['the amount is another'],
    sameHex(call.data, calldataOf(type, order, validator.pubkey))
      ? []
      : ["the calldata is not the spec's public key and amount, byte for byte"],
    sameHex(call.to, type.contract) ? [] : [`the call does not go to the EIP-7002 contract ${type.contract}`],
    call.chainId === config.chainId ? [] : [`the call is not for chain id ${config.chainId}`],
    fee.feeWei >= 1n && call.valueWei >= fee.feeWei && call.valueWei <= 2n * fee.feeWei + 1_000n
      ? []
      : ["the call's value is not the contract's fee with some headroom"],
  ].flat()
}

/** Everything that must hold of the service's answer, from spec, network and signer. */
export function createRequestVerification({ assertMaySend }: Pick<RequestTargets, 'assertMaySend'>) {
  /** @returns the calldata, by the spec @throws Halt */
  return (body: RequestBody, asked: Asked, network: EthereumNetwork, signer: StakingSigner): Hex => {
    const { order, validator } = asked
    const data = calldataOf(typeOf(order), order, validator.pubkey)
    const wrong = mismatches(body, asked, network)
    if (wrong.length > 0) {
      throw stall(
        'VerificationFailed',
        `What the staking API has as this request does not match this resource's spec: ${wrong.join('; ')}. Nothing was signed. Do not work around this: find out why the staking API answers so.`,
      )
    }
    assertMaySend(signer, body.unsignedTransaction.from)
    return data
  }
}
