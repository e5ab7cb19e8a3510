/**
 * Whether a request's Host header is a name that only whoever runs the cluster can make lead here: an IP address, `localhost`, a name without dots, or that of a
 * Service. A page of somebody else's can have its own name lead to 127.0.0.1, where a port-forward listens, and then read what answers as if it were its own
 * (DNS rebinding); the browser sends that name as Host.
 */
export function isOwnHost(host: string | undefined): boolean {
  if (host === undefined) return false
  const name = host.replace(/:\d{1,5}$/, '').toLowerCase()
  const isAddress = /^\[[0-9a-f:.%]+\]$/.test(name) || /^\d{1,3}(\.\d{1,3}){3}$/.test(name)
  return isAddress || /^[a-z0-9-]+$/.test(name) || /^[a-z0-9.-]+\.(svc|svc\.cluster\.local|pod\.cluster\.local|localhost)$/.test(name)
}
