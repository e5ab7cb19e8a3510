/** The clients of the devnet. Versions stand in the go.mod beside, too; the test of the assets compares them. */
export const GETH_VERSION = '1.17.10'
export const PRYSM_VERSION = '7.1.2'
/** The oldest Go that compiles both (the `go` lines of their own go.mod files). */
export const GO_VERSION = '1.25'

export type DevnetProgram = 'geth' | 'beacon-chain' | 'validator' | 'prysmctl'

/**
 * One Go module and what is built from it. geth and Prysm never share a module: Prysm pins an old geth as a library, and a build of both would quietly
 * give that one.
 */
export interface DevnetClient {
  readonly name: string
  readonly version: string
  /** Folder beside this file with go.mod and go.sum. */
  readonly module: string
  readonly packages: Readonly<Partial<Record<DevnetProgram, string>>>
}

const prysm = 'github.com/OffchainLabs/prysm/v7/cmd'
export const CLIENTS: readonly DevnetClient[] = [
  { name: 'geth', version: GETH_VERSION, module: 'geth', packages: { geth: 'github.com/ethereum/go-ethereum/cmd/geth' } },
  {
    name: 'prysm',
    version: PRYSM_VERSION,
    module: 'prysm',
    packages: { 'beacon-chain': `${prysm}/beacon-chain`, validator: `${prysm}/validator`, prysmctl: `${prysm}/prysmctl` },
  },
]

export const programsOf = (client: DevnetClient): readonly DevnetProgram[] => Object.keys(client.packages) as DevnetProgram[]
