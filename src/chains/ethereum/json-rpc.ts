export * from '../../lib/json-rpc.ts'
