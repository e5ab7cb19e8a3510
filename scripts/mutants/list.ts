/** A rule taken out of the product, in words, and the tests of which one must fail without it. */
export interface Mutant {
  readonly name: string
  readonly without: string
  readonly patches: readonly { readonly file: string; readonly from: string; readonly to: string }[]
  /** Files of tests, the quickest first. */
  readonly tests: readonly string[]
  /** Which of their tests, where a few show it. */
  readonly titles?: string
}

const log = 'src/operator/transactions'
const stake = 'src/operator/kinds/ethereum-stake'

/** The rules that money hangs on. Each text stands once in its file: a patch that does not apply is a failure too. */
export const mutants: readonly Mutant[] = [
  {
    name: 'write-ahead',
    without: 'an attempt is written down before it is sent',
    patches: [
      {
        file: `${log}/take.ts`,
        from: 'const written = await store.writeStatus(\n      record,\n      withPlace(',
        to: 'const written = ((one: RecordObject, status: never) => ({ ...one, status }))(\n      record,\n      withPlace(',
      },
    ],
    tests: [`${log}/rows-nodes.test.ts`, `${stake}/crash.test.ts`],
    titles: 'a node answers for a final block|ended at every single point',
  },
  {
    name: 'fence',
    without: 'a record is written only as it was read: its uid and its resourceVersion',
    patches: [
      { file: `${log}/store.ts`, from: '{ ...change, metadata: { uid } },', to: 'change,' },
      {
        file: `${log}/store.ts`,
        from: '{ resourceVersion, fieldManager, ...(subresource',
        to: '{ resourceVersion: resourceVersion && uid && (await records.client.get({ name }, signal)).metadata.resourceVersion, fieldManager, ...(subresource',
      },
    ],
    tests: [`${log}/store.test.ts`],
  },
  {
    name: 'record-collision',
    without: 'a record whose name is taken is the other one, not this one',
    patches: [{ file: `${log}/store.ts`, from: '        return existing\n      }', to: '        return { ...existing, spec }\n      }' }],
    tests: [`${log}/store.test.ts`],
  },
  {
    name: 'one-deposit-of-a-resource',
    without: 'of the stakes that a resource names one after the other, one is paid',
    patches: [
      {
        file: `${stake}/admission.ts`,
        from: 'await assertIsThePaidOne(record, request, network, fresh, signal)',
        to: 'void assertIsThePaidOne',
      },
    ],
    tests: [`${stake}/adopt-changes.test.ts`],
  },
  {
    name: 'place-collision',
    without: 'a place whose number is taken is the one that stands there',
    patches: [
      {
        file: `${log}/store.ts`,
        from: 'return { ...toPlace(place), created }',
        to: 'return { nonce, transaction: spec.transaction, created: true }',
      },
    ],
    tests: [`${log}/store.test.ts`],
  },
  {
    name: 'limit',
    without: 'what is over a limit of its signer takes no place',
    patches: [{ file: `${log}/funds.ts`, from: 'limit.ask(record, admission.signer)', to: 'undefined as ReturnType<Pass["ask"]>' }],
    tests: [`${log}/rows-limits.test.ts`],
    titles: 'stop at the limit',
  },
  {
    name: 'limit-in-order',
    without: 'under a limit no place is taken beyond one that somebody else has',
    patches: [{ file: `${log}/take.ts`, from: 'if (place?.created !== true) break', to: 'if (place?.created !== true) continue' }],
    tests: [`${log}/rows-limits.test.ts`],
    titles: 'a place that the other has just taken',
  },
  {
    name: 'limit-of-places',
    without: 'a place that was taken for a record counts for a limit before the record names it',
    patches: [
      {
        file: `${log}/limiter.ts`,
        from: 'const isClaimed = !accountsFor(record, place) && (await mayHaveLanded(moment, record, place.nonce))',
        to: 'const isClaimed = false && mayHaveLanded !== undefined',
      },
    ],
    tests: [`${log}/rows-limits.test.ts`],
    titles: 'no time to name',
  },
  {
    name: 'approval',
    without: 'what a policy wants approved is not signed before',
    patches: [
      { file: `${log}/approvals.ts`, from: 'if (voters.length < one.count) throw lacking(', to: 'if (voters.length < 0) throw lacking(' },
    ],
    tests: [`${log}/rows-approvals.test.ts`],
    titles: 'waits for an approval with its plan',
  },
  {
    name: 'approval-of-others',
    without: 'whoever has asked for something does not approve it',
    patches: [
      {
        file: `${log}/approval-rules.ts`,
        from: 'if (requestedBy.some((user) => person(user) === person(spec.approver)))',
        to: 'if (requestedBy.length < 0)',
      },
    ],
    tests: [`${log}/rows-approvals.test.ts`],
    titles: 'by whoever has asked for it',
  },
  {
    name: 'approval-before-broadcast',
    without: 'an approval that is revoked before the first broadcast stops it',
    patches: [
      {
        file: `${log}/call.ts`,
        from: 'if (!wasBroadcast(of, attempt)) await deps.approvals',
        to: 'if (wasBroadcast(of, attempt)) await deps.approvals',
      },
    ],
    tests: [`${log}/rows-approvals.test.ts`],
    titles: 'ended at every single point',
  },
  {
    name: 'proof-of-a-remake',
    without: 'every configured node has as final what makes a second one possible',
    patches: [{ file: `${log}/follow.ts`, from: ", signal)) === 'agreed'),", to: ", signal)) !== 'disagreed')," }],
    tests: [`${log}/rows-lanes.test.ts`],
    titles: 'before both have that',
  },
  {
    name: 'block-hash',
    without: 'a receipt counts only if its block is the one at that height, by hash',
    patches: [
      {
        file: 'src/chains/ethereum/trace.ts',
        from: 'block !== undefined && block.hash === blockHash && (block.transactions',
        to: 'block !== undefined && blockHash !== undefined && (block.transactions',
      },
    ],
    tests: ['src/chains/ethereum/agreement.test.ts'],
  },
  {
    name: 'block-content',
    without: 'every node lists the transaction in the block that closes a place',
    patches: [
      { file: 'src/chains/ethereum/agreement.ts', from: ' || (hash !== undefined && !isIn(own, own.hash, lowerCase(hash)))', to: '' },
    ],
    tests: ['src/chains/ethereum/agreement.test.ts'],
    titles: 'of what one of two nodes makes up',
  },
  {
    name: 'result-of-a-transaction',
    without: 'nodes that show different results of a transaction disagree',
    patches: [{ file: 'src/chains/ethereum/trace.ts', from: '!isSameResult(other, receipt)', to: 'false' }],
    tests: ['src/chains/ethereum/agreement.test.ts'],
    titles: 'of what one of two nodes makes up',
  },
  {
    name: 'lost-bytes',
    without: 'a call that can not be sent again does not hold its lane',
    patches: [{ file: `${log}/call.ts`, from: 'followed.assertGoesOn(known, moment, attempt)', to: 'void followed' }],
    tests: [`${log}/rows-witnesses.test.ts`],
    titles: 'and it is followed under its nonce',
  },
  {
    name: 'deposit-root',
    without: 'the deposit data root is computed, not believed',
    patches: [
      {
        file: 'src/chains/ethereum/verify-deposit.ts',
        from: 'holds: () => sameHex(depositData.depositDataRoot, depositDataRoot(depositData)),',
        to: 'holds: () => true,',
      },
    ],
    tests: ['src/chains/ethereum/verify-deposit.test.ts'],
  },
  {
    name: 'second-look',
    without: 'owner, signer and policy are read past the cache right before the first broadcast',
    patches: [
      {
        file: `${log}/call.ts`,
        from: 'await kind.mayBeSigned(of, true, moment.signal)',
        to: 'await kind.mayBeSigned(of, false, moment.signal)',
      },
    ],
    tests: [`${log}/rows-owners.test.ts`],
    titles: 'while the watches are silent .* team-a/stake-1 is not sent',
  },
  {
    name: 'shown-look',
    without: 'a status with nothing new to write is no look past the cache',
    patches: [
      {
        file: 'src/operator/engine/reconcile.ts',
        from: "if (await draft.flush({ at: 'step', step })) return draft.resource",
        to: "await draft.flush({ at: 'step', step })\n        return draft.resource",
      },
    ],
    tests: [`${log}/rows-owners.test.ts`],
    titles: 'it is suspended, after an operator ended right before the first sending: team-a/stake-1',
  },
  {
    name: 'witnesses',
    without: 'whoever knows of a transaction is asked before every place',
    patches: [{ file: `${log}/preparation.ts`, from: 'switch (witness.is) {', to: "switch ('none' as typeof witness.is) {" }],
    tests: [`${log}/rows-witnesses.test.ts`],
    titles: 'nobody but the staking API knows it',
  },
  {
    name: 'told-first',
    without: 'the staking API is told of a hash before it is sent',
    patches: [
      {
        file: `${log}/call.ts`,
        from: '(await tell(of, attempt, moment.signal))',
        to: 'true',
      },
    ],
    tests: [`${log}/rows-witnesses.test.ts`],
    titles: 'nobody but the staking API knows it',
  },
  {
    name: 'import-first',
    without: 'a lane that is taken over by half signs nothing',
    patches: [
      {
        file: `${log}/lane.ts`,
        from: 'const importing = deps.importing(lane)',
        to: "const importing = deps.importing({ ...lane, address: '' })",
      },
    ],
    tests: [`${log}/legacy/import.test.ts`],
    titles: 'nothing is signed with the key, for nobody',
  },
  {
    name: 'claims',
    without: 'what an earlier version may have sent is looked for before anything is signed',
    patches: [{ file: `${log}/preparation.ts`, from: 'if (await followsClaim(moment, record)) return undefined', to: '' }],
    tests: [`${log}/legacy/import.test.ts`],
    titles: 'a hash that no node knows holds its own stake',
  },
  {
    name: 'record-outlives',
    without: 'a resource that is there keeps its record',
    patches: [
      {
        file: `${log}/held.ts`,
        from: 'if (await deps.ownerExists(owner, isFresh, signal)) return owner',
        to: 'if (isFresh && !(await deps.ownerExists(owner, isFresh, signal))) continue',
      },
    ],
    tests: [`${log}/prune.test.ts`],
    titles: 'stays while its resource is there',
  },
  {
    name: 'fresh-labels',
    without: "the namespace's labels are read past the cache right before the first broadcast",
    patches: [
      {
        file: `${log}/ethereum-signer.ts`,
        from: 'if (fresh && goesByLabels(signer, namespace)) await deps.refreshNamespace(namespace, signal)',
        to: '',
      },
    ],
    tests: [`${log}/rows-owners.test.ts`],
    titles: 'loses the label that the policy admits it by, right before the first sending: team-a/stake-1',
  },
  {
    name: 'signer-held',
    without: 'a signer has its finalizer before a place is taken in its name',
    patches: [{ file: `${log}/take.ts`, from: 'await holdSigner(first.admission.signer, moment.signal)', to: 'void holdSigner' }],
    tests: [`${log}/rows-owners.test.ts`],
    titles: 'a signer has its finalizer before the first place is taken',
  },
  {
    name: 'followed-place',
    without: 'a number under which a record follows what a witness knew is not filled',
    patches: [{ file: `${log}/tend.ts`, from: ', named.has(place.nonce))', to: ')' }],
    tests: [`${log}/rows-witnesses.test.ts`],
    titles: 'under a number that was given to nobody',
  },
  {
    name: 'legacy-filler',
    without: 'nothing else is signed for what an earlier version may have paid under a number that is filled',
    patches: [
      {
        file: `${log}/protocol.ts`,
        from: 'const mayPay = record.subject !== undefined && subjects.includes(record.subject)',
        to: 'const mayPay = subjects.includes("nobody")',
      },
    ],
    tests: [`${log}/legacy/import.test.ts`],
    titles: 'was signed for a resource that is gone may land yet',
  },
  {
    name: 'catch-up',
    without: 'a new leader reads the log past its caches before it looks at anything',
    patches: [{ file: `${log}/catch-up.ts`, from: 'if (!hasRecords || pending === undefined) return true', to: 'pending ??= new Set()' }],
    tests: [`${log}/stale-caches.test.ts`],
    titles: 'whose caches show nothing of it waits for its nonce',
  },
  {
    name: 'import-of-others',
    without: 'nothing is signed for what the ledger of another signer names',
    patches: [{ file: `${log}/preparation.ts`, from: 'if (importing !== undefined) throw importing', to: '' }],
    tests: [`${log}/stale-caches.test.ts`],
    titles: 'nothing is signed for it with any key',
  },
]
