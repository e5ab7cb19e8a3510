/**
 * The rules by which the staking API refuses a new stake, by its codes: which field of the spec is meant, and what is wrong with it. What the API itself writes is
 * not copied into status.
 */
const rules: Readonly<Record<string, { readonly field: string; readonly says: string }>> = {
  'amount-out-of-range': {
    field: 'spec.amountEth or spec.amountLamports',
    says: 'must be an amount that the chain takes: 32 ETH with Execution credentials, 32 to 2048 ETH with Compounding ones; on Solana the rent reserve and the minimum delegation or more',
  },
  'address-checksum': {
    field: 'spec.withdrawalAddress',
    says: 'has a wrong checksum (EIP-55, its upper and lower case): it is probably mistyped',
  },
  'zero-address': { field: 'spec.withdrawalAddress', says: 'is the zero address: nobody can withdraw from there' },
  'unspendable-address': { field: 'spec.withdrawalAddress', says: 'is an address that never pays anything out' },
  'withdrawal-address-is-contract': { field: 'spec.withdrawalAddress', says: 'is a contract' },
  'invalid-address': {
    field: 'an address of the spec, or of one of its signers',
    says: 'is not a Solana address: base58 of 32 bytes',
  },
  'address-off-curve': { field: 'the address of a signer', says: 'is one that no key can sign for' },
  'vote-account-required': {
    field: 'spec.voteAccount',
    says: 'is left out, and the staking API has no vote account of its own choice: name one',
  },
  'vote-account-missing': { field: 'spec.voteAccount', says: 'does not exist on the cluster' },
  'not-a-vote-account': { field: 'spec.voteAccount', says: 'is not a vote account: take care not to name the identity or the node' },
  'vote-account-delinquent': { field: 'spec.voteAccount', says: 'does not vote now: a stake with it earns nothing' },
  'vote-account-keeps-rewards': { field: 'spec.voteAccount', says: 'keeps all rewards: a stake with it earns nothing' },
  'vote-account-without-bls-key': {
    field: 'spec.voteAccount',
    says: 'names no BLS key, by which the cluster admits validators: a stake with it earns nothing',
  },
  'destination-is-stake': { field: 'spec.destination', says: 'is the stake account itself' },
  'destination-is-sysvar': { field: 'spec.destination', says: 'is a sysvar: money that goes there is lost' },
  'destination-is-program': { field: 'spec.destination', says: 'is a program or its account: money that goes there is lost' },
  'destination-burns': { field: 'spec.destination', says: 'burns what it gets' },
  'destination-without-key': { field: 'spec.destination', says: 'is an address that no key can sign for' },
}

/** A code as it may be shown. */
const shown = (code: string): string => code.slice(0, 64).replace(/[^a-z0-9-]/g, '')

/** Why the staking API refused a spec, and what to do, in sentences. */
export function refusalBy(codes: readonly string[]): string {
  // The spec may be right: the operator has the network, and the staking API lacks it.
  if (codes.includes('unknown-network'))
    return 'The staking API has no network of the name in spec.network (unknown-network), and the operator has. Whoever runs the staking API must add it to its configuration under the same name; this resource goes on by itself then, and need not be deleted. GET /v1/networks shows those that it has.'
  const known = codes.map((code) => {
    const rule = Object.hasOwn(rules, code) ? rules[code] : undefined
    return rule === undefined ? `the rule ${shown(code)}` : `${rule.field} ${rule.says} (${code})`
  })
  const why = known.length === 0 ? 'and does not say by which rule. Its log does' : known.join('; ')
  return `The staking API refused the request: ${why}. Delete this resource, and create it with another value.`
}
