import type { Command, Look } from './runbook.ts'

/** Commands that several runbooks have. What is in capitals is filled in by the reader. */
export const pods: Look = {
  shows: 'The pods, and who holds the lease. Of two or more pods one leads; the others wait with filled caches.',
  run: 'kubectl -n staking-system get pods,lease',
}

const operatorPods = '-l app.kubernetes.io/name=staking-operator,app.kubernetes.io/component=operator'
const servicePods = '-l app.kubernetes.io/name=staking-operator,app.kubernetes.io/component=service'
const logs = (selector: string, pattern: string, since = '1h'): string =>
  `kubectl -n staking-system logs ${selector} --tail=-1 --since=${since} | grep -E '${pattern}' | tail -n 20`

/** The log of every instance of the operator; the leader's lines are among them. */
export const operatorLog = (shows: string, pattern = '"level":"(warn|error|fatal)"', since = '1h'): Look => ({
  shows,
  run: logs(operatorPods, pattern, since),
})
export const serviceLog = (shows: string, pattern = '"level":"(warn|error|fatal)"'): Look => ({ shows, run: logs(servicePods, pattern) })

const asked = (deployment: string, path: string): string =>
  `kubectl -n staking-system exec deploy/${deployment} -- node -e "fetch('http://127.0.0.1:8081${path}').then(async (answer) => console.log(answer.status, await answer.text()))"`
export const operatorReady = (shows: string): Look => ({ shows, run: asked('staking-operator', '/readyz') })
export const serviceReady = (shows: string): Look => ({ shows, run: asked('staking-operator-service', '/readyz?verbose') })

/** Lines of the doctor's report, run where the operator runs. It ends with 1 where something is wrong: what it prints is the answer. */
export const doctor = (pattern: string): string =>
  `{ kubectl exec -n staking-system deploy/staking-operator -- node /app/dist/main.js doctor || true; } | grep -E '${pattern}'`

export const describe: Look = {
  shows: 'What one of them says: the conditions hold the reason and what to do about it, the events what happened before.',
  run: 'kubectl describe KIND NAME -n NAMESPACE',
}
export const transactions: Look = {
  shows: 'Every transaction that was signed: `Open` may still land, `Waiting` is not signed yet.',
  run: 'kubectl get stx -o wide',
}
export const signers: Look = { shows: 'The signers: address, balance, and why one can’t be used.', run: 'kubectl get signer -o wide' }
export const waiting: Look = {
  shows: 'Which resources have waited longest, and for what.',
  query: 'sort_desc(staking_operator_resource_condition_age_seconds)',
}

export const stopAll: Command = {
  does: 'Stop everything that is signed or sent, by whichever instance leads. It takes two seconds, and loses nothing:',
  run: 'kubectl -n staking-system annotate lease staking-operator staking.dev/suspend=true --overwrite',
}
export const goOn: Command = {
  does: 'Once it is known why, let it go on:',
  run: 'kubectl -n staking-system annotate lease staking-operator staking.dev/suspend-',
}
export const stopSigner: Command = {
  does: 'Stop the one key; the others go on:',
  run: `kubectl patch signer SIGNER --type=merge -p '{"spec":{"suspend":true}}'`,
}
export const lookAgain: Command = {
  does: 'What is mended is looked at again within five minutes. To have a resource looked at now:',
  run: 'kubectl annotate KIND NAME -n NAMESPACE staking.dev/reconcile-at="$(date +%s)" --overwrite',
}

export const keepLog = 'Delete or edit a StakingTransaction or a SignerNonce. They are the only record of what may still land.'
export const keepFinalizers = 'Remove a finalizer by hand. It is there because money is staked, or because a transaction may still land.'
