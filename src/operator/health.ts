import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'
import { ConfigError, systemCode } from '../lib/config-error.ts'
import type { Page } from './page/page.ts'

export interface HealthServer {
  /** Where it listens, such as `127.0.0.1:8080`. */
  readonly address: string
  close(): Promise<void>
}

/**
 * `/healthz` (the process works), `/readyz` (its caches are filled; also while another instance leads) and `/metrics`. A check answers undefined
 * when all is well, else what is wrong. With `page`, the web page too. @throws ConfigError when nobody can listen there
 */
export async function serveHealth(options: {
  readonly host: string
  readonly port: number
  readonly registry: Registry
  readonly healthy: () => string | undefined
  readonly ready: () => string | undefined
  readonly page?: Page | undefined
}): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const check = (trouble: string | undefined) => {
      response.writeHead(trouble === undefined ? 200 : 503, { 'content-type': 'text/plain; charset=utf-8' }).end(trouble ?? 'ok')
    }
    const page = options.page?.({ method: request.method ?? '', url: request.url ?? '', host: request.headers.host })
    if (page !== undefined) {
      response.writeHead(page.status, { ...page.headers, 'content-length': Buffer.byteLength(page.body) }).end(page.body)
      return
    }
    if (request.method !== 'GET') {
      response.writeHead(405, { allow: 'GET' }).end()
      return
    }
    switch (request.url?.split('?')[0]) {
      case '/healthz':
        return check(options.healthy())
      case '/readyz':
        return check(options.ready())
      case '/metrics':
        options.registry.metrics().then(
          (text) => response.writeHead(200, { 'content-type': options.registry.contentType }).end(text),
          () => response.writeHead(500).end(),
        )
        return
      default:
        response.writeHead(404).end()
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new ConfigError(
          `--listen ${options.host}:${options.port}: nobody can listen there (${systemCode(error)}): name another address or port`,
        ),
      ),
    )
    server.listen(options.port, options.host, resolve)
  })
  const { address, port } = server.address() as AddressInfo
  return {
    address: `${address}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
