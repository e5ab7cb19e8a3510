import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createNodeBoard, registerNodeMetrics } from './board.ts'
import type { NodeReading } from './nodes.ts'

const reading = (node: number, more: Partial<NodeReading> = {}): NodeReading => ({
  node,
  height: 100n,
  lag: 0n,
  unhealthy: false,
  refusedMethods: 0,
  disagreements: 0,
  ...more,
})

test('the metrics show each node of each network as it is when they are scraped', async () => {
  const registry = new Registry()
  const board = createNodeBoard()
  registerNodeMetrics(registry, 'staking_operator', board)
  board.set('gone', () => [reading(1)])
  board.set('hoodi', () => [
    reading(1, { height: undefined }),
    reading(2, { lag: 7n, unhealthy: true, refusedMethods: 2, disagreements: 3 }),
  ])
  board.set('hoodi', () => [reading(1, { height: 9n })], { beacon: true })
  board.keep(['hoodi'])
  for (let scrape = 0; scrape < 2; scrape++) {
    const lines = (await registry.metrics()).split('\n').filter((line) => !line.startsWith('#') && line !== '')
    expect(lines).toEqual([
      'staking_operator_rpc_node_height{network="hoodi",node="2"} 100',
      'staking_operator_rpc_node_height{network="hoodi",node="beacon-1"} 9',
      'staking_operator_rpc_node_lag_blocks{network="hoodi",node="1"} 0',
      'staking_operator_rpc_node_lag_blocks{network="hoodi",node="2"} 7',
      'staking_operator_rpc_node_lag_blocks{network="hoodi",node="beacon-1"} 0',
      'staking_operator_rpc_node_unhealthy{network="hoodi",node="1"} 0',
      'staking_operator_rpc_node_unhealthy{network="hoodi",node="2"} 1',
      'staking_operator_rpc_node_unhealthy{network="hoodi",node="beacon-1"} 0',
      'staking_operator_rpc_node_refused_methods{network="hoodi",node="1"} 0',
      'staking_operator_rpc_node_refused_methods{network="hoodi",node="2"} 2',
      'staking_operator_rpc_node_refused_methods{network="hoodi",node="beacon-1"} 0',
      'staking_operator_rpc_node_disagreements_total{network="hoodi",node="1"} 0',
      'staking_operator_rpc_node_disagreements_total{network="hoodi",node="2"} 3',
      'staking_operator_rpc_node_disagreements_total{network="hoodi",node="beacon-1"} 0',
    ])
  }
})
