import type { ApiRequest, KubeCaller } from '../../operator/kube/caller.ts'

/** A plan writes nothing: of all requests only reads pass, and what the API server only tries (`dryRun=All`). */
export function isHarmless({ method, path }: Pick<ApiRequest, 'method' | 'path'>): boolean {
  if (method === 'GET') return true
  const query = new URLSearchParams(path.split('?')[1] ?? '')
  const tries = query.getAll('dryRun')
  return method === 'PATCH' && tries.length === 1 && tries[0] === 'All'
}

/** @throws Error for every request that could change anything: it is not sent */
export function readOnly(caller: Pick<KubeCaller, 'call'>): Pick<KubeCaller, 'call'> {
  return {
    call: (request, signal) => {
      if (!isHarmless(request)) throw new Error(`a plan writes nothing: ${request.method} of ${request.resource} is not sent`)
      return caller.call(request, signal)
    },
  }
}
