export * from '../../lib/shared-call.ts'
