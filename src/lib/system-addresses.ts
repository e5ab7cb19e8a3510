/*
 * Ethereum addresses that nobody can spend from, known without asking a chain. Money that is sent to one is lost. Here because the resources refuse them at
 * admission, and the chains and the service again.
 */

/**
 * Contracts of the protocol that take no money back out, in lower case, and what each is. Sources (28 November 2026): EIP-4788, EIP-2935, EIP-7002,
 * EIP-7251 ("Constants" of each: SYSTEM_ADDRESS and the predeploy's address); EIP-8282 (of Amsterdam and Gloas, 29 November 2026: the two contracts of
 * builders' requests, also in alloy-eips 2.5.0 and Nethermind's Eip8282Constants); eth-clients/mainnet and eth-clients/sepolia, DEPOSIT_CONTRACT_ADDRESS.
 */
export const systemContracts: Readonly<Record<string, string>> = {
  '0x00000000219ab540356cbb839cbe05303d7705fa': 'the deposit contract',
  '0x7f02c3e3c98b133055b8b348b2ac625669ed295d': "Sepolia's deposit contract",
  '0x00000961ef480eb55e80d19ad83579a64c007002': 'the contract of withdrawal requests (EIP-7002)',
  '0x0000bbddc7ce488642fb579f8b00f3a590007251': 'the contract of consolidation requests (EIP-7251)',
  '0x0000bff46984e3725691fa540a8c7589300d8282': "the contract of builders' deposits (EIP-8282)",
  '0x000064d678505ad48f8ccb093bc65613800e8282': "the contract of builders' exits (EIP-8282)",
  '0x000f3df6d732807ef1319fb7b8bb8522d0beac02': 'the contract of beacon roots (EIP-4788)',
  '0x0000f90827f1c53a10cb7a02335b175320002935': 'the contract of block hashes (EIP-2935)',
  '0xfffffffffffffffffffffffffffffffffffffffe': "the sender of the protocol's own calls (SYSTEM_ADDRESS)",
}

/**
 * The range that EIP-1352 sets aside for precompiles and system use: those of today (0x01 to 0x11, 0x0100) and of forks to come, the zero address, and
 * the usual burn address 0x…dEaD.
 */
export const reservedAddress = /^0x0{36}[0-9a-fA-F]{4}$/
