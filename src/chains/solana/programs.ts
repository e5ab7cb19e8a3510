/** Programs and sysvars by address. Source: the Solana documentation, "Native Programs" and "Sysvars". */
export const systemProgram = '11111111111111111111111111111111'
export const stakeProgram = 'Stake11111111111111111111111111111111111111'
export const voteProgram = 'Vote111111111111111111111111111111111111111'
export const computeBudgetProgram = 'ComputeBudget111111111111111111111111111111'
/** Named by every delegation, and unused since the warm-up rate is no longer configured there. */
export const stakeConfig = 'StakeConfig11111111111111111111111111111111'

export const clockSysvar = 'SysvarC1ock11111111111111111111111111111111'
export const stakeHistorySysvar = 'SysvarStakeHistory1111111111111111111111111'
export const epochRewardsSysvar = 'SysvarEpochRewards1111111111111111111111111'
export const rentSysvar = 'SysvarRent111111111111111111111111111111111'
export const recentBlockhashesSysvar = 'SysvarRecentB1ockHashes11111111111111111111'
/** Owns all sysvars' accounts. */
export const sysvarOwner = 'Sysvar1111111111111111111111111111111111111'

/** Owns the accounts of feature gates. */
export const featureProgram = 'Feature111111111111111111111111111111111111'

/** What it gets is burned at the end of the slot. Source: Solana SDK, `incinerator::ID`. */
export const burnAddress = '1nc1nerator11111111111111111111111111111111'

/** A stake account's data, in bytes. */
export const stakeAccountSpace = 200
/** The longest seed of a derived address, in bytes (MAX_SEED_LEN). */
export const maxSeedBytes = 32
/** The longest transaction, in bytes: what fits into an IPv6 packet (PACKET_DATA_SIZE). */
export const maxTransactionBytes = 1232
/** u64::MAX: no epoch. */
export const noEpoch = (1n << 64n) - 1n
