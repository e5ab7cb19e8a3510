import { Counter, Gauge, type Registry } from 'prom-client'
import type { NodeReading } from './nodes.ts'

/** Where the networks' nodes are read from at scrape time. A network that is set again replaces the one before. */
export interface NodeBoard {
  set(network: string, read: () => readonly NodeReading[], options?: { readonly beacon: boolean }): void
  /** Forgets all networks but these. */
  keep(networks: readonly string[]): void
  /** `node` is its number in the order of the configuration, from 1; a beacon node's has `beacon-` before it. */
  readings(): readonly (Omit<NodeReading, 'node'> & { readonly network: string; readonly node: string })[]
}

export function createNodeBoard(): NodeBoard {
  const readers = new Map<string, { readonly network: string; readonly prefix: string; readonly read: () => readonly NodeReading[] }>()
  return {
    set: (network, read, { beacon } = { beacon: false }) => {
      const prefix = beacon ? 'beacon-' : ''
      readers.set(`${prefix}${network}`, { network, prefix, read })
    },
    keep: (networks) => {
      for (const [key, { network }] of readers) if (!networks.includes(network)) readers.delete(key)
    },
    readings: () =>
      [...readers.values()].flatMap(({ network, prefix, read }) =>
        read().map((reading) => ({ ...reading, network, node: `${prefix}${reading.node}` })),
      ),
  }
}

const labelNames = ['network', 'node']

/** The metrics of a network's nodes, named `<program>_rpc_node_…`. */
export function registerNodeMetrics(registry: Registry, program: string, board: Pick<NodeBoard, 'readings'>): void {
  type Reading = ReturnType<NodeBoard['readings']>[number]
  const registers = [registry]
  const gauge = (name: string, help: string, valueIn: (reading: Reading) => number | undefined) =>
    new Gauge({
      name: `${program}_rpc_node_${name}`,
      help,
      labelNames,
      registers,
      collect() {
        this.reset()
        for (const reading of board.readings()) {
          const value = valueIn(reading)
          if (value !== undefined) this.set({ network: reading.network, node: reading.node }, value)
        }
      },
    })
  gauge('height', 'Height of the block or slot that the node showed last.', ({ height }) =>
    height === undefined ? undefined : Number(height),
  )
  gauge('lag_blocks', 'Blocks or slots below the highest node of the network.', ({ lag }) => Number(lag))
  gauge('unhealthy', '1 while the node is asked last: it failed a moment ago, is behind the others, or stands still.', ({ unhealthy }) =>
    unhealthy ? 1 : 0,
  )
  gauge('refused_methods', 'Methods that the node refused in the last minutes.', ({ refusedMethods }) => refusedMethods)
  new Counter({
    name: `${program}_rpc_node_disagreements_total`,
    help: 'How often the node said something else of the chain than another node of the network.',
    labelNames,
    registers,
    collect() {
      this.reset()
      for (const { network, node, disagreements } of board.readings()) this.inc({ network, node }, disagreements)
    },
  })
}
