"""
Asks the executable consensus specification what becomes of EIP-7002 requests, queued withdrawals and deposits, fork by fork, and writes the table that
src/chains/ethereum/consensus-oracle.test.ts compares our rules with. Run by hand when the rules or the specification change:

    python3.12 -m venv /tmp/oracle && /tmp/oracle/bin/pip install 'eth-consensus-specs[test]==1.7.0b4'
    /tmp/oracle/bin/python scripts/consensus-oracle.py > src/chains/ethereum/consensus-oracle.json && npx biome format --write src/chains/ethereum/consensus-oracle.json

The minimal preset; amounts in gwei; null is FAR_FUTURE_EPOCH. Nothing of it depends on time or chance.
"""
import importlib
import json
import random
import sys

from eth_consensus_specs.test.helpers.genesis import create_genesis_state

FORKS = ["electra", "fulu", "gloas"]
ETH = 10**9
OWNER = bytes.fromhex("52908400098527886e0f7030069857d2e4169ee7")
OTHER = bytes.fromhex("11" * 20)
VALIDATOR = 3
EPOCH = 100
AGE = 64  # SHARD_COMMITTEE_PERIOD of the minimal preset


def scenarios():
    base = {
        "credentials": "02", "activationEpoch": 5, "exitEpoch": None, "slashed": False,
        "balance": 40 * ETH, "effective": 40 * ETH, "queue": [], "full": False, "known": True,
    }
    exit_ = ["owner", 0]
    def w(amount, source="owner"):
        return [source, amount]
    edges = [
        ("an exit", {}, [exit_]),
        ("a withdrawal", {}, [w(3 * ETH)]),
        ("a withdrawal of all that is over 32 ETH", {}, [w(8 * ETH)]),
        ("a withdrawal that is cut", {}, [w(9 * ETH)]),
        ("an exit of a 0x01 validator", {"credentials": "01"}, [exit_]),
        ("a withdrawal of a 0x01 validator", {"credentials": "01"}, [w(ETH)]),
        ("an exit of a 0x00 validator", {"credentials": "00"}, [exit_]),
        ("an exit from another address", {}, [["other", 0]]),
        ("a withdrawal from another address", {}, [w(ETH, "other")]),
        ("an exit of an unknown key", {"known": False}, [exit_]),
        ("an exit on the day before it is old enough", {"activationEpoch": EPOCH - AGE + 1}, [exit_]),
        ("an exit on the day that it is old enough", {"activationEpoch": EPOCH - AGE}, [exit_]),
        ("an exit before it is active", {"activationEpoch": EPOCH + 1}, [exit_]),
        ("an exit that is under way", {"exitEpoch": EPOCH + 5}, [exit_]),
        ("a withdrawal of an exiting validator", {"exitEpoch": EPOCH + 5}, [w(ETH)]),
        ("an exit of one that has exited", {"exitEpoch": EPOCH - 5}, [exit_]),
        ("an exit of a slashed validator", {"exitEpoch": EPOCH + 5, "slashed": True}, [exit_]),
        ("an exit with a withdrawal pending", {"queue": [[VALIDATOR, ETH, EPOCH + 9]]}, [exit_]),
        ("an exit with another's withdrawal pending", {"queue": [[VALIDATOR + 1, ETH, EPOCH + 9]]}, [exit_]),
        ("a withdrawal with one pending", {"queue": [[VALIDATOR, 5 * ETH, EPOCH + 9]]}, [w(5 * ETH)]),
        ("a withdrawal with all pending", {"queue": [[VALIDATOR, 8 * ETH, EPOCH + 9]]}, [w(ETH)]),
        ("a withdrawal at an effective balance of 31 ETH", {"effective": 31 * ETH}, [w(ETH)]),
        ("a withdrawal of one gwei over", {"balance": 32 * ETH + 1}, [w(ETH)]),
        ("a withdrawal of exactly 32 ETH", {"balance": 32 * ETH}, [w(ETH)]),
        ("a withdrawal with the queue full", {"full": True}, [w(ETH)]),
        ("an exit with the queue full", {"full": True}, [exit_]),
        ("two withdrawals in a block", {}, [w(3 * ETH), w(2 * ETH)]),
        ("two equal withdrawals in a block", {}, [w(3 * ETH), w(3 * ETH)]),
        ("two withdrawals of which the second is cut", {}, [w(6 * ETH), w(6 * ETH)]),
        ("two withdrawals of which the first takes all", {}, [w(9 * ETH), w(ETH)]),
        ("a stranger's withdrawal before the owner's", {}, [w(3 * ETH, "other"), w(3 * ETH)]),
        ("two exits in a block", {}, [exit_, exit_]),
        ("an exit after a withdrawal", {}, [w(ETH), exit_]),
        ("a withdrawal after an exit", {}, [exit_, w(ETH)]),
        ("an exit after a stranger's exit", {}, [["other", 0], exit_]),
    ]
    for name, change, requests in edges:
        yield name, {**base, **change}, requests
    pick = random.Random(7002)
    for number in range(45):
        state = {
            **base,
            "credentials": pick.choice(["00", "01", "02", "02", "02", "02"]),
            "activationEpoch": pick.choice([5, 5, 5, EPOCH - AGE, EPOCH - AGE + 1, EPOCH + 2]),
            "exitEpoch": pick.choice([None, None, None, None, EPOCH + 3]),
            "balance": pick.choice([32 * ETH, 32 * ETH + 1, 33 * ETH, 40 * ETH, 40 * ETH, 100 * ETH]),
            "effective": pick.choice([31, 32, 33, 40, 40]) * ETH,
            "queue": [[pick.choice([VALIDATOR, VALIDATOR + 1]), pick.choice([1, 2, 8]) * ETH, EPOCH + 9] for _ in range(pick.choice([0, 0, 1, 2]))],
        }
        requests = [
            [pick.choice(["owner", "owner", "owner", "other"]), pick.choice([0, 1, ETH, 3 * ETH, 8 * ETH, 2**64 - 1])]
            for _ in range(pick.choice([1, 1, 2, 3]))
        ]
        yield f"a chance state {number + 1}", state, requests


def far(spec, epoch):
    return None if int(epoch) == 2**64 - 1 else int(epoch)


def view(spec, state, index):
    if index is None:
        validator = None
    else:
        v = state.validators[index]
        validator = {
            "balance": int(state.balances[index]), "effective": int(v.effective_balance), "slashed": bool(v.slashed),
            "activationEpoch": far(spec, v.activation_epoch), "exitEpoch": far(spec, v.exit_epoch), "withdrawableEpoch": far(spec, v.withdrawable_epoch),
        }
    return validator, [[int(p.validator_index), int(p.amount), int(p.withdrawable_epoch)] for p in state.pending_partial_withdrawals]


def build(spec, given):
    state = create_genesis_state(spec, [spec.MAX_EFFECTIVE_BALANCE] * 64, spec.MAX_EFFECTIVE_BALANCE)
    state.slot = spec.Slot(EPOCH * int(spec.SLOTS_PER_EPOCH) + 2)
    v = state.validators[VALIDATOR]
    v.withdrawal_credentials = spec.Bytes32(bytes.fromhex(given["credentials"]) + b"\x00" * 11 + OWNER)
    v.activation_epoch = spec.Epoch(given["activationEpoch"])
    v.exit_epoch = spec.FAR_FUTURE_EPOCH if given["exitEpoch"] is None else spec.Epoch(given["exitEpoch"])
    v.withdrawable_epoch = spec.FAR_FUTURE_EPOCH if given["exitEpoch"] is None else spec.Epoch(given["exitEpoch"] + 256)
    v.slashed = given["slashed"]
    v.effective_balance = spec.Gwei(given["effective"])
    state.balances[VALIDATOR] = spec.Gwei(given["balance"])
    queue = list(given["queue"])
    if given["full"]:
        queue += [[VALIDATOR + 1, 1, EPOCH + 9]] * (int(spec.PENDING_PARTIAL_WITHDRAWALS_LIMIT) - len(queue))
    for index, amount, epoch in queue:
        state.pending_partial_withdrawals.append(
            spec.PendingPartialWithdrawal(validator_index=index, amount=amount, withdrawable_epoch=epoch)
        )
    return state


def request_rows(specs):
    rows = []
    for name, given, requests in scenarios():
        by_fork = {}
        for fork, spec in specs.items():
            state = build(spec, given)
            index = VALIDATOR if given["known"] else None
            pubkey = state.validators[VALIDATOR].pubkey if given["known"] else spec.BLSPubkey(b"\xaa" * 48)
            before = view(spec, state, index)
            outcomes = []
            for source, amount in requests:
                exit_before = state.validators[VALIDATOR].exit_epoch
                queued = len(state.pending_partial_withdrawals)
                spec.process_withdrawal_request(
                    state,
                    spec.WithdrawalRequest(
                        source_address=spec.ExecutionAddress(OWNER if source == "owner" else OTHER), validator_pubkey=pubkey, amount=spec.Gwei(amount)
                    ),
                )
                if len(state.pending_partial_withdrawals) > queued:
                    entry = state.pending_partial_withdrawals[queued]
                    outcomes.append({"withdrawal": int(entry.amount), "withdrawableEpoch": int(entry.withdrawable_epoch)})
                elif state.validators[VALIDATOR].exit_epoch != exit_before:
                    outcomes.append({"exitEpoch": int(state.validators[VALIDATOR].exit_epoch)})
                else:
                    outcomes.append("dropped")
            after = view(spec, state, index)
            added = after[1][len(before[1]):]
            by_fork[fork] = {"outcomes": outcomes, "exitEpoch": None if after[0] is None else after[0]["exitEpoch"], "added": added}
        rows.append({"name": name, "state": given, "requests": requests, "forks": collapse(by_fork)})
    return rows


def collapse(by_fork):
    """One entry where every fork says the same."""
    values = list(by_fork.values())
    return {"all": values[0]} if all(value == values[0] for value in values) else by_fork


def payment_rows(specs):
    base = {"credentials": "02", "activationEpoch": 5, "exitEpoch": None, "slashed": False, "balance": 40 * ETH, "effective": 40 * ETH, "full": False, "known": True}
    cases = [
        ("is paid when its epoch has come", {}, [[VALIDATOR, 3 * ETH, EPOCH]]),
        ("waits while its epoch has not come", {}, [[VALIDATOR, 3 * ETH, EPOCH + 1]]),
        ("pays nothing once the exit epoch is set", {"exitEpoch": EPOCH + 5}, [[VALIDATOR, 3 * ETH, EPOCH]]),
        ("pays nothing once it was slashed", {"exitEpoch": EPOCH + 5, "slashed": True}, [[VALIDATOR, 3 * ETH, EPOCH]]),
        ("pays what is left when the balance fell", {"balance": 33 * ETH}, [[VALIDATOR, 3 * ETH, EPOCH]]),
        ("pays nothing when nothing is left", {"balance": 32 * ETH}, [[VALIDATOR, 3 * ETH, EPOCH]]),
        ("pays nothing when the effective balance fell", {"effective": 31 * ETH}, [[VALIDATOR, 3 * ETH, EPOCH]]),
    ]
    rows = []
    for name, change, queue in cases:
        by_fork = {}
        for fork, spec in specs.items():
            state = build(spec, {**base, **change, "queue": queue})
            found, _, processed = spec.get_pending_partial_withdrawals(state, spec.WithdrawalIndex(0), [])
            own = [int(w.amount) for w in list(found)[: int(processed)] if int(w.validator_index) == VALIDATOR]
            by_fork[fork] = {"leavesQueue": int(processed) > 0, "pays": own[0] if own and int(processed) > 0 else 0}
        rows.append({"name": name, "state": {**base, **change, "queue": queue}, "forks": collapse(by_fork)})
    return rows


def deposit_rows(specs):
    rows = []
    key = 12345
    for name, fork_version, break_signature in [
        ("signed for this network", None, False),
        ("signed for another network", "20000000", False),
        ("with a signature that is not its own", None, True),
    ]:
        by_fork = {}
        data = None
        for fork, spec in specs.items():
            spec.bls.bls_active = True
            pubkey = spec.bls.SkToPk(key)
            credentials = spec.Bytes32(b"\x02" + b"\x00" * 11 + OWNER)
            amount = spec.Gwei(32 * ETH)
            version = spec.config.GENESIS_FORK_VERSION if fork_version is None else spec.Version(bytes.fromhex(fork_version))
            domain = spec.compute_domain(spec.DOMAIN_DEPOSIT, version)
            message = spec.DepositMessage(pubkey=pubkey, withdrawal_credentials=credentials, amount=amount)
            signature = spec.bls.Sign(key + (1 if break_signature else 0), spec.compute_signing_root(message, domain))
            state = build(spec, {"credentials": "02", "activationEpoch": 5, "exitEpoch": None, "slashed": False, "balance": 32 * ETH, "effective": 32 * ETH, "queue": [], "full": False})
            count = len(state.validators)
            spec.apply_pending_deposit(
                state, spec.PendingDeposit(pubkey=pubkey, withdrawal_credentials=credentials, amount=amount, signature=signature, slot=spec.Slot(0))
            )
            by_fork[fork] = "validator" if len(state.validators) > count else "lost"
            data = {
                "pubkey": "0x" + bytes(pubkey).hex(), "withdrawalCredentials": "0x" + bytes(credentials).hex(), "amount": int(amount),
                "signature": "0x" + bytes(signature).hex(), "genesisForkVersion": "0x" + bytes(spec.config.GENESIS_FORK_VERSION).hex(),
            }
        rows.append({"name": name, "deposit": data, "forks": collapse(by_fork)})
    return rows


def timing_rows(specs):
    """In which epoch a payload's requests are judged: its own, or from Gloas on that of the next block, whatever is missed between."""
    spec = specs["gloas"]
    rows = []
    for missed in [0, 3]:
        given = {"credentials": "02", "activationEpoch": EPOCH - AGE, "exitEpoch": None, "slashed": False, "balance": 40 * ETH, "effective": 40 * ETH, "queue": [], "full": False}
        state = build(spec, given)
        slots = int(spec.SLOTS_PER_EPOCH)
        payload_slot = EPOCH * slots - 1
        state.latest_block_header.slot = spec.Slot(payload_slot)
        state.slot = spec.Slot(payload_slot + 1 + missed)
        requests = spec.ExecutionRequests.empty()
        requests.withdrawals.append(
            spec.WithdrawalRequest(source_address=spec.ExecutionAddress(OWNER), validator_pubkey=state.validators[VALIDATOR].pubkey, amount=spec.Gwei(0))
        )
        spec.apply_parent_execution_payload(state, requests)
        rows.append({
            "payloadSlot": payload_slot, "missed": missed, "processedAt": int(state.slot), "activationEpoch": given["activationEpoch"],
            "accepted": far(spec, state.validators[VALIDATOR].exit_epoch) is not None,
        })
    return rows


def main():
    specs = {fork: importlib.import_module(f"eth_consensus_specs.{fork}.minimal") for fork in FORKS}
    spec = specs["electra"]
    spec.bls.bls_active = False
    for one in specs.values():
        one.bls.bls_active = False
    table = {
        "specification": "eth-consensus-specs 1.7.0b4, minimal preset",
        "forks": FORKS,
        "constants": {
            "slotsPerEpoch": int(spec.SLOTS_PER_EPOCH), "shardCommitteePeriod": int(spec.config.SHARD_COMMITTEE_PERIOD),
            "minActivationBalance": int(spec.MIN_ACTIVATION_BALANCE), "pendingPartialWithdrawalsLimit": int(spec.PENDING_PARTIAL_WITHDRAWALS_LIMIT),
            "epoch": EPOCH, "validatorIndex": VALIDATOR, "owner": "0x" + OWNER.hex(), "other": "0x" + OTHER.hex(),
        },
        "requests": request_rows(specs),
        "timing": timing_rows(specs),
        "payments": payment_rows(specs),
        "deposits": deposit_rows(specs),
    }
    json.dump(table, sys.stdout, separators=(",", ":"))


main()
