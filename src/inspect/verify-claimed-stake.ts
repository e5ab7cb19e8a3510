import { depositDataRoot, encodeDepositCalldata, withdrawalCredentials } from '../chains/ethereum/deposit.ts'
import type { EthereumNetworkConstants } from '../chains/ethereum/networks.ts'
import { AmountError, formatEth, formatWeiAsEth, gweiToWei, parseEth } from '../lib/amounts.ts'
import { sameHex } from '../lib/hex.ts'
import type { ClaimedStake, DepositClaim } from './deposit-claims.ts'
import { sameAs, type Verdict, verdict } from './verdict.ts'

/**
 * What a stake of the staking API says beside its deposit data, above all the transaction that it would have signed: good deposit data beside a transaction
 * that pays somebody else is no deposit. By the rules of the operator's own `verifyDeposit`.
 */
export function verifyClaimedStake(claim: DepositClaim, network: EthereumNetworkConstants & { readonly name: string }): readonly Verdict[] {
  const { stake } = claim
  if (stake === undefined) return []
  return [
    ...sameAs('network of the stake', stake.network, network.name),
    ...verifyCredentials(claim, stake),
    ...verifyAmount(claim, stake),
    ...verifyCall(claim, stake, network),
  ]
}

function verifyCredentials(claim: DepositClaim, { withdrawalAddress, credentialsType }: ClaimedStake): readonly Verdict[] {
  const given = claim.withdrawalCredentials.slice(0, 4)
  const type = credentialsType ?? given
  const isRight =
    (type === '0x01' || type === '0x02') &&
    type === given &&
    (withdrawalAddress === undefined || sameHex(claim.withdrawalCredentials, withdrawalCredentials(type, withdrawalAddress)))
  if (withdrawalAddress === undefined && credentialsType === undefined) return []
  const words = [credentialsType, withdrawalAddress].filter((word) => word !== undefined).join(', ')
  return [verdict('credentials of the stake', isRight, isRight ? words : `it says ${words}, and its deposit data says another`)]
}

function verifyAmount({ amountGwei }: DepositClaim, { amountEth }: ClaimedStake): readonly Verdict[] {
  if (amountEth === undefined) return []
  const isSame = gweiIn(amountEth) === amountGwei
  return [
    verdict(
      'amount of the stake',
      isSame,
      isSame ? `${amountEth} ETH` : `it says ${amountEth} ETH, and its deposit data says ${formatEth(amountGwei)} ETH`,
    ),
  ]
}

function gweiIn(eth: string) {
  try {
    return parseEth(eth)
  } catch (error) {
    if (error instanceof AmountError) return undefined
    throw error
  }
}

function verifyCall(
  claim: DepositClaim,
  { unsignedTransaction: call }: ClaimedStake,
  { chainId, depositContractAddress: contract }: EthereumNetworkConstants,
): readonly Verdict[] {
  if (call === undefined) return []
  const isToContract = sameHex(call.to, contract)
  const isCall = sameHex(call.data, encodeDepositCalldata({ ...claim, depositDataRoot: depositDataRoot(claim) }))
  const value = gweiToWei(claim.amountGwei)
  return [
    ...sameAs('chain id of the call', call.chainId, chainId),
    verdict(
      'to',
      isToContract,
      isToContract ? 'it calls the deposit contract' : `it goes to ${call.to}, and the deposit contract is ${contract}`,
    ),
    verdict(
      'calldata',
      isCall,
      isCall
        ? 'the call of deposit() that the deposit data makes, byte for byte'
        : 'it is not the call of deposit() that the deposit data makes, byte for byte',
    ),
    verdict(
      'value',
      call.valueWei === value,
      call.valueWei === value
        ? `${formatWeiAsEth(value)} ETH`
        : `${formatWeiAsEth(call.valueWei)} ETH, and it should be ${formatWeiAsEth(value)} ETH`,
    ),
  ]
}
