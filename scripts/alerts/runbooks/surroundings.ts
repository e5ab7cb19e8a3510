import { operatorLog, serviceReady, signers, stopSigner, transactions, waiting } from './commands.ts'
import type { Runbook } from './runbook.ts'

/** Where the values are that a change of the nodes is made in. */
const networksFile = 'the chart’s `networks`, or the Secret of `networksSecret`'
const applyValues = {
  does: `Change ${networksFile}. The operator reloads the file within a minute or two; nothing is restarted:`,
  run: 'helm upgrade staking-operator charts/staking-operator -n staking-system --values values.yaml',
}
const lag = 'max by (network, node) (staking_operator_rpc_node_lag_blocks)'

export const surroundingRunbooks: Readonly<Record<string, Runbook>> = {
  StakingNodeUnhealthy: {
    meaning: 'The node’s number is its place in `rpcUrls`, from 1; `beacon-` stands before that of a beacon node.',
    money: 'No. One node’s word decides nothing, and one that is behind is asked last.',
    impact:
      'The other nodes do the work. What every configured node must confirm, such as making a lost transaction again, waits for this one.',
    look: [
      { shows: 'Which nodes, and how far behind.', query: lag },
      {
        shows: 'What the calls to that network end with.',
        query: 'sum by (network, outcome) (rate(staking_operator_rpc_request_duration_seconds_count[5m]))',
      },
      {
        shows: 'Whether anything waits for it.',
        run: 'kubectl get staking -A -o wide | grep -E "NonceUseUnproven|NodesDisagree|ChainUnavailable"',
      },
    ],
    causes: [
      { seen: 'it lags and catches up', cause: 'It is syncing, or short of resources.' },
      { seen: 'calls end with `refused`', cause: 'The key in its URL has expired or is used up, or it does not serve a method.' },
      {
        seen: 'calls end with `no-answer` or `timeout`',
        cause: 'It is down or overloaded, or a network policy or a firewall is in between.',
      },
    ],
    mend: [
      'Mend the node, or ask its operator.',
      'If it is gone for good, take it out and put another in its place, of another operator than the rest. As long as it is listed, what it might know counts.',
      applyValues,
    ],
    escalate: 'In the morning, unless [StakingNetworkUnreachable](StakingNetworkUnreachable.md) fires too.',
    never: ['Leave a network with a single node, or with two of one operator: one node’s lie would go unnoticed.'],
  },
  StakingNetworkUnreachable: {
    money: 'No. Nothing is concluded from silence. What was sent may land meanwhile, once.',
    impact: 'On this network nothing is signed, sent or followed, and no validator’s state is seen. Other networks go on.',
    look: [
      {
        shows: 'What the calls end with, by node method.',
        query: 'sum by (network, method, outcome) (rate(staking_operator_rpc_request_duration_seconds_count{outcome!="ok"}[5m])) > 0',
      },
      {
        shows: 'What the nodes say, in the words of the resources.',
        run: 'kubectl events -A --types=Warning | grep -E "ChainUnavailable|NodeAccessDenied|MethodNotServed"',
      },
      operatorLog('The same in the log.', 'ChainUnavailable|NodeAccessDenied|networks file'),
      waiting,
    ],
    causes: [
      { seen: 'every node at once', cause: 'Egress from the cluster: DNS, a proxy, a network policy, a firewall.' },
      { seen: '`refused`', cause: 'A provider’s key has expired or its quota is used up.' },
      { seen: 'a public explorer shows no new blocks either', cause: 'The chain itself stands still.' },
      { seen: 'since a change of the networks', cause: 'A wrong URL.' },
    ],
    mend: [
      {
        does: 'See whether the name of a node is known in the cluster (it prints an address):',
        run: `kubectl -n staking-system exec deploy/staking-operator -- node -e "require('node:dns').lookup('NODE-HOST', (error, address) => console.log(error?.code ?? address))"`,
      },
      'Renew the key of the provider, or add a node of another one.',
      applyValues,
      'If the chain itself stands still, wait: work resumes without you.',
    ],
    escalate:
      'After 30 minutes, to the team that runs the nodes or the cluster’s network; at once, if an exit or a withdrawal has a deadline.',
    never: [
      'Point the network at a node that you found on the web. What it says decides whether money is sent.',
      'Put a URL that holds a key into the values or a ticket: it belongs into the Secret of `networksSecret`.',
    ],
  },
  StakingNodesDisagree: {
    money: 'No. Whatever the nodes disagree about is not concluded, and nothing is signed on it.',
    impact: 'Resources whose block is in question wait with `NodesDisagree`; the rest goes on.',
    look: [
      {
        shows: 'Which node says something else, and how often.',
        query: 'sum by (network, node) (increase(staking_operator_rpc_node_disagreements_total[1h])) > 0',
      },
      { shows: 'How high each is.', query: 'max by (network, node) (staking_operator_rpc_node_height)' },
      { shows: 'What waits because of it.', run: 'kubectl get staking -A -o wide | grep NodesDisagree' },
    ],
    causes: [
      { seen: 'it ends within a minute or two', cause: 'A reorganisation of a block or two.' },
      { seen: 'one node’s blocks differ from a public explorer’s', cause: 'It is on a fork, stuck, of another network, or lies.' },
      { seen: 'a fork of the protocol was due today', cause: 'A node was not upgraded.' },
    ],
    mend: [
      'Compare the hash that each node gives for one height (`eth_getBlockByNumber`) with a block explorer.',
      'Upgrade or resync the wrong node, or take it out.',
      applyValues,
    ],
    escalate:
      'At once, if more nodes than one show another chain than the explorers: to the teams that run them, and stop everything ([Stop in an emergency](../how-to/emergency-stop.md)).',
    never: ['Remove the nodes that disagree with the one that suits you before you have compared each of them with an explorer.'],
  },
  StakingApiFailing: {
    money: 'No. Nothing is sent that the API was not told of before, and requests are repeated under the same idempotency key.',
    impact: 'No stake, exit or withdrawal is made. What was sent before is followed on the chain.',
    look: [
      {
        shows: 'How the calls end, by operation.',
        query: 'sum by (operation, outcome) (rate(staking_operator_staking_api_request_duration_seconds_count{outcome!="ok"}[5m])) > 0',
      },
      {
        shows: 'What the resources say.',
        run: 'kubectl events -A --types=Warning | grep -E "ServiceUnavailable|Unauthorized|RequestRefused|ClockSkew"',
      },
      serviceReady('With the service of this chart: whether its database and its networks are there.'),
      operatorLog('What the API answers.', 'ServiceUnavailable|Unauthorized'),
    ],
    causes: [
      {
        seen: 'calls end with `network` or `timeout`',
        cause: 'The API, its load balancer or its DNS name is down; or a network policy is in between.',
      },
      { seen: '`problem`, and resources say `Unauthorized`', cause: 'The API key was revoked or has expired.' },
      {
        seen: '`problem`, and resources say `ServiceUnavailable`',
        cause: 'The service or its database: [StakingServiceErrors](StakingServiceErrors.md).',
      },
      { seen: '`invalid-response`', cause: 'Something else answers at the URL, such as a proxy, or another version of the API.' },
      {
        seen: '`network`, since a certificate was renewed',
        cause: 'The certificate has expired, or `stakingApi.caSecret` is of another authority.',
      },
    ],
    mend: [
      'The service of this chart: follow [StakingServiceErrors](StakingServiceErrors.md).',
      'A key: [The API key of the operator](../how-to/rotate-keys.md#the-api-key-of-the-operator).',
      'An API of somebody else: ask the team that runs it. There is nothing to do here; work resumes once it answers.',
    ],
    escalate: 'After 30 minutes, to the team that runs the staking API.',
    never: ['Point the operator at another staking API to get going. Stakes of the one are unknown to the other.'],
  },
  StakingRemoteSignerFailing: {
    meaning: 'The signer’s name is that of the chart’s `remoteSigners`, which StakingSigners have as `spec.keyName`.',
    money:
      'No. Nothing is signed, and what was signed before stands in the log, is sent again where a node lacks it (on Solana it expires instead), and is followed.',
    impact: 'What this key has to pay, exit or withdraw waits. Fees of what is under way can’t be raised. Other signers go on.',
    look: [
      {
        shows: 'How the calls end, by signer.',
        query: 'sum by (signer, operation, outcome) (rate(staking_operator_remote_signer_request_duration_seconds_count[10m])) > 0',
      },
      signers,
      operatorLog('What the signer answers.', 'SignerUnavailable|SignerRefused|SignerMisbehaves|remote signer'),
    ],
    causes: [
      {
        seen: '`cannot be reached`, or no answer in time',
        cause: 'The signer, its load balancer or its DNS name is down; or a network policy is in between.',
      },
      {
        seen: '`cannot be reached (CERT_HAS_EXPIRED)` or another code of TLS',
        cause: 'A certificate has expired, or is of another authority or name than the file of remote signers says.',
      },
      { seen: '`answered 503 (sealed, or starting)`', cause: 'Vault or OpenBao is sealed.' },
      {
        seen: '`SignerRefused`',
        cause: 'The key is disabled or gone, or the token, the role or the policy does not allow the operator to sign.',
      },
      { seen: '`has no AWS credentials`', cause: 'The service account has no role, or STS can’t be reached.' },
    ],
    mend: [
      'Mend the signer, or ask the team that runs it. Work resumes within a minute of its first answer; [`doctor`](../how-to/look-into-it.md) asks it now.',
      'Certificates, tokens and roles: [Remote signers](../how-to/remote-signers.md).',
      'The stake key of Solana stakes is gone for good: take its entry out of `remoteSigners`. Only then does [the withdraw authority](../how-to/rotate-keys.md#an-authority-of-a-solana-stake) pay, withdraw and replace it.',
    ],
    escalate: 'After 30 minutes, to the team that runs the signer; at once, if an exit or a withdrawal has a deadline.',
    never: [
      'Give the operator more rights at the signer than to sign with this key.',
      'Mount a copy of the key to get going, unless that was planned: a key that has left its signer has left it for good.',
    ],
  },
  StakingRemoteSignerMisbehaves: {
    meaning: 'Resources of that signer say `SignerMisbehaves`, and what differs: the chain id, the recipient, the key.',
    money:
      'Not by what the operator does: it has thrown the signature away. But a signer that signs what nobody asked for may sign for others too.',
    impact: 'Nothing is signed with this key. Other signers go on.',
    look: [
      {
        shows: 'Which signer, and how often.',
        query:
          'sum by (signer, operation) (increase(staking_operator_remote_signer_request_duration_seconds_count{outcome="misbehaves"}[1h])) > 0',
      },
      { shows: 'What differs.', run: 'kubectl events -A --types=Warning | grep SignerMisbehaves' },
      transactions,
    ],
    causes: [
      { seen: 'the chain id differs', cause: 'That Web3Signer is set up for another chain: each serves one.' },
      {
        seen: 'it is not of the key of the address',
        cause:
          'An alias of AWS KMS names another key now; the key of Transit was replaced; or somebody else answers in the signer’s place.',
      },
      { seen: 'anything else differs', cause: 'A proxy or the signer changes requests: treat it as a break-in.' },
    ],
    mend: [
      stopSigner,
      'Compare the address on a block explorer with `kubectl get stx`: whether it has sent anything that is not in the log.',
      'Mend the signer; name the key by its ARN rather than by an alias. It is asked again each minute.',
    ],
    escalate: 'At once, to whoever owns the key and to security, unless it is a chain id that was set wrong.',
    never: ['Set `policy.sharedKey` to get going.'],
  },
}
