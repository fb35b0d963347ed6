"""Remove each guard of the ledger in turn: a test must fail, or the guard is decoration.

    python -m tools.ledger_mutations [--only WORD] [--database sqlite|postgres]

Works on a copy of the project; the original is never touched. Prints a Markdown table (it stands in
docs/ledger.md) and exits with 1 when a mutation survives.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGET, SQL = "include/budget", "include/budget/migrations/sql"
GUARDS = f"{SQL}/0002_guards_sqlite.sql"


@dataclass(frozen=True)
class Edit:
    """One replacement; `pattern` is a regular expression that must match."""

    file: str
    pattern: str
    replacement: str = ""


@dataclass(frozen=True)
class Mutation:
    """A guard to remove."""

    invariant: str
    guard: str
    edits: tuple[Edit, ...]
    tests: str
    database: str = "sqlite"


def code(invariant: str, guard: str, file: str, old: str, new: str, tests: str) -> Mutation:
    """Replace a piece of code."""
    edit = Edit(f"{BUDGET}/{file}", re.escape(old), new)
    return Mutation(invariant, guard, (edit,), tests)


def on_postgres(invariant: str, guard: str, file: str, old: str, new: str) -> Mutation:
    """Replace a piece of code that only PostgreSQL runs."""
    edit = Edit(f"{BUDGET}/{file}", re.escape(old), new)
    return Mutation(invariant, f"PostgreSQL: {guard}", (edit,), "test_optimistic", "postgres")


def trigger(invariant: str, name: str, tests: str = "test_tamper") -> Mutation:
    """Drop a trigger from the migration."""
    pattern = rf"CREATE TRIGGER {name} .*?\n;;\n"
    return Mutation(invariant, f"trigger `{name}`", (Edit(GUARDS, pattern),), tests)


def check(invariant: str, name: str, tests: str = "test_tamper") -> Mutation:
    """Make a CHECK constraint say nothing."""
    pattern = rf"CONSTRAINT {name} CHECK \([^\n]*\)(,?)\n"
    edit = Edit(f"{SQL}/0001_tables.sql", pattern, rf"CONSTRAINT {name} CHECK (1 = 1)\1\n")
    return Mutation(invariant, f"CHECK `{name}`", (edit,), tests)


MUTATIONS = [
    check("I1", "dp_pool_cap"),
    check("I1", "dp_pool_held"),
    code(
        "I1",
        "the policy asks whether a charge fits",
        "policy.py",
        "return room.charge(price(epsilon_pico)) <= room.available_pico",
        "room.charge(price(epsilon_pico))\n    return True",
        "test_policy",
    ),
    code(
        "I1",
        "partitions count with the largest others",
        "partitions.py",
        "used += sum(totals[:seats])",
        "used += 0",
        "test_amendments",
    ),
    check("I2", "dp_posting_spent_grows"),
    trigger("I2", "dp_pool_fixed"),
    trigger("I2", "dp_limit_update"),
    trigger("I2", "dp_pool_balance"),
    code(
        "I3",
        "verify compares the tables",
        "verify.py",
        "for name in _differing(row, due):",
        "for name in ():",
        "test_tamper",
    ),
    code(
        "I3",
        "verify compares the postings",
        "verify.py",
        "_postings(connection, replay),",
        "",
        "test_tamper",
    ),
    code(
        "I3", "verify looks for the guards", "verify.py", "_guards(connection),", "", "test_tamper"
    ),
    code(
        "I4",
        "the state machine refuses a wrong start",
        "states.py",
        "    if state in starts:\n        return",
        "    if state:\n        return",
        "test_life test_race",
    ),
    trigger("I4", "dp_charge_arrow"),
    trigger("I4", "dp_charge_fence"),
    trigger("I4", "dp_charge_fixed"),
    trigger("I4", "dp_charge_opened"),
    trigger("I4", "dp_charge_kept"),
    trigger("I4", "dp_release_withdrawn"),
    trigger("I4", "dp_dataset_fixed"),
    code(
        "I4",
        "SQLite writers wait in line (BEGIN IMMEDIATE)",
        "store/prepared.py",
        'self._driver.execute("BEGIN IMMEDIATE")',
        'self._driver.execute("BEGIN")',
        "test_race",
    ),
    code(
        "I4",
        "a resume brings a newer attempt",
        "measuring.py",
        'if attempt_number(attempt) <= attempt_number(charge.attempt or "0"):',
        "if False:",
        "test_life",
    ),
    code(
        "I5",
        "the fence stops a zombie",
        "measuring.py",
        "if charge.fence != opened.fence:",
        "if False:",
        "test_life",
    ),
    code(
        "I5",
        "a resume raises the fence",
        "measuring.py",
        'values = {"fence": fence, "attempt"',
        'values = {"fence": charge.fence, "attempt"',
        "test_life",
    ),
    code(
        "I5",
        "an interrupted round is never drawn again",
        "measuring.py",
        "if number != charge.rounds_begun + 1 or",
        "if",
        "test_life",
    ),
    code(
        "I5",
        "a resume holds the journal's transcript",
        "measuring.py",
        "if last_round != charge.rounds_answered:",
        "if False:",
        "test_life",
    ),
    code(
        "I5",
        "spend before read: open moves held to spent",
        "opening.py",
        "move(spent, HELD, SPENT) +",
        "",
        "test_life",
    ),
    code(
        "I6",
        "a plan above what is held is refused",
        "opening.py",
        "if spent[pool_id] > held:",
        "if False:",
        "test_life",
    ),
    code(
        "I5",
        "who pays is whose rows are measured",
        "reservation.py",
        "    _require_snapshot(tx, request)\n",
        "",
        "test_reserve",
    ),
    code(
        "I5",
        "verify asks who pays for a charge",
        "replay.py",
        "            self._check_pools(key, old, new)\n",
        "",
        "test_tamper",
    ),
    code(
        "I5",
        "no forked process inherits a connection of SQLite",
        "store/engine.py",
        "inherits = _inherits(engine)",
        "inherits = lambda: False",
        "test_crash",
    ),
    code(
        "I6",
        "a plan keeps its (epsilon, delta)",
        "costing.py",
        "if cost.rho_pico > rho_from_epsilon(granted_pico, delta_exponent):",
        "if False:",
        "test_reserve",
    ),
    code(
        "I6",
        "a plan is not cheaper than its events",
        "opening.py",
        "    require_within(recost(events), cost,",
        "    str(",
        "test_life",
    ),
    code(
        "I6",
        "rounds together stay within the plan",
        "measuring.py",
        "        require_within(recost([*earlier, *events]), charge.cost, told)",
        "        str(told)",
        "test_life",
    ),
    code(
        "I6",
        "no seal with an unanswered round",
        "measuring.py",
        "    if charge.rounds_closed != charge.rounds_begun:\n        raise",
        "    if False:\n        raise",
        "test_life",
    ),
    code(
        "I6",
        "one transcript for ever",
        "measuring.py",
        "if charge.transcript_digest != digest:",
        "if False:",
        "test_life",
    ),
    code(
        "I7",
        "a key with other parameters is a conflict",
        "reservation.py",
        "        if charge.key == request.key:\n            raise IdempotencyConflict(",
        "        if charge.key == request.key:\n            return _replay(charge)\n"
        "            raise IdempotencyConflict(",
        "test_reserve",
    ),
    code(
        "I7",
        "a known question gets its earlier answer",
        "reservation.py",
        "    if earlier is not None:\n        return earlier",
        "    str(earlier)",
        "test_reserve",
    ),
    code(
        "I7",
        "one manifest for ever",
        "releasing.py",
        "if charge.manifest_digest != manifest_digest:",
        "if False:",
        "test_life",
    ),
    code(
        "I6",
        "one table for ever",
        "statements.py",
        "    if facts != earlier:",
        "    if False:",
        "test_statements",
    ),
    code(
        "I6",
        "no report passes after one that did not",
        "statements.py",
        'if passed and last is not None and not last["passed"]:',
        "if False:",
        "test_statements",
    ),
    code(
        "I6",
        "one report once publishing has begun",
        "statements.py",
        "    if charge.state == states.PUBLISHING:",
        "    if False:",
        "test_statements",
    ),
    code(
        "I6",
        "what is approved is the last report",
        "statements.py",
        'if (_last_report(tx, charge_id) or {}).get("digest") != report:',
        "if False:",
        "test_statements",
    ),
    code(
        "I6",
        "an approval does not count for a later report",
        "statements.py",
        "    if last not in approved:",
        "    if not approved:",
        "test_statements",
    ),
    code(
        "I6",
        "an approval asked for is an entry",
        "statements.py",
        "    if last not in approved:",
        "    if False:",
        "test_statements",
    ),
    code(
        "I6",
        "whoever asked approves nothing",
        "statements.py",
        'if require_text(by, name="approver") == charge.actor:',
        "if False:",
        "test_statements",
    ),
    Mutation(
        "I6",
        "PostgreSQL: an approved report is still the last when publishing begins",
        (Edit(f"{BUDGET}/statements.py", r"    tx\.under_lock\(\)  # a report[^\n]*\n"),),
        "test_statements",
        "postgres",
    ),
    trigger("I8", "dp_entry_follows"),
    trigger("I8", "dp_entry_update"),
    trigger("I8", "dp_entry_delete"),
    trigger("I8", "dp_posting_update"),
    trigger("I8", "dp_posting_delete"),
    trigger("I8", "dp_head_update"),
    code(
        "I8",
        "verify recomputes each hash",
        "replay.py",
        'if row["hash"] != entry_hash(seq, row["prev_hash"], row["body"]):',
        "if False:",
        "test_tamper",
    ),
    code(
        "I8",
        "verify counts the entries",
        "replay.py",
        "if seq != self.seq + 1:",
        "if False:",
        "test_tamper",
    ),
    code(
        "I8",
        "verify compares the anchors",
        "verify.py",
        "_anchors(seen, hashes, replay),",
        "",
        "test_tamper",
    ),
    code(
        "I8",
        "a rewound ledger sells nothing",
        "anchors.py",
        "if not missing:",
        "if True:",
        "test_reconcile",
    ),
    code(
        "I8",
        "a younger checkpoint hides no loss",
        "anchors.py",
        "return sorted(known.values())",
        "return sorted(known.values())[-1:]",
        "test_reconcile",
    ),
    code(
        "I8",
        "a rewound ledger measures nothing",
        "ledger.py",
        "self.guard(tx)",
        "pass",
        "test_reconcile",
    ),
    code(
        "I8",
        "a reconciliation gives nothing back",
        "replay.py",
        'if paid < min(told, pool["cap_pico"]):',
        "if False:",
        "test_reconcile",
    ),
    code(
        "I9",
        "below the floor nothing is granted",
        "policy.py",
        "if not _fits(room, accept_at_least_pico, price):",
        "if False:",
        "test_policy",
    ),
    code(
        "I9",
        "a denial holds nothing",
        "policy.py",
        'return Decision(0, None, binding, f"denied by {binding}: {why}")',
        'return Decision(0, None, binding, f"denied by {binding}: {why}", '
        '{"dataset:people:zcdp:1": 1})',
        "test_reserve test_policy",
    ),
    Mutation(
        "I10",
        "the entry trigger asks that postings sum to zero",
        (
            Edit(
                GUARDS,
                re.escape("sum(amount_pico) <> 0 OR pool_id NOT IN"),
                "pool_id NOT IN",
            ),
        ),
        "test_tamper",
    ),
    Mutation(
        "I10",
        "the entry trigger asks that every pool is there",
        (
            Edit(
                GUARDS,
                re.escape(" OR pool_id NOT IN (SELECT pool_id FROM dp_pool)"),
            ),
        ),
        "test_tamper",
    ),
    Mutation(
        "I10",
        "PostgreSQL: the entry trigger counts the balanced pools",
        (Edit(GUARDS.replace("sqlite", "postgresql"), r"IF balanced <> \(", "IF 0 > ("),),
        "test_tamper",
        "postgres",
    ),
    Mutation(
        "I11",
        "the accountant rounds up",
        (
            Edit(
                "include/accounting/accountant.py",
                re.escape("return -((-amount * ONE).__floor__())"),
                "return (amount * ONE).__floor__()",
            ),
        ),
        "test_cases",
    ),
    Mutation(
        "I5",
        "PostgreSQL: an answer waits for the disk",
        (Edit(f"{BUDGET}/store/prepared.py", r", \[_FLUSH\]", ", []"),),
        "test_crash",
        "postgres",
    ),
    on_postgres(
        "I1",
        "a step's pools still stand when it is written",
        "store/optimistic.py",
        "declared=self._declared,",
        "declared=None,",
    ),
    on_postgres(
        "I1",
        "what rests on exact figures is decided under the lock",
        "reservation.py",
        "        tx.under_lock()",
        "        pass",
    ),
    on_postgres(
        "I4",
        "a step's charge still stands when it is written",
        "store/prepared.py",
        "func.dp_expected(stands, at, type_=Text)",
        "func.dp_expected(True, at, type_=Text)",
    ),
    on_postgres(
        "I7",
        "without the lock a step can only say yes",
        "store/optimistic.py",
        "if not unlocked.written:",
        "if False:",
    ),
    on_postgres(
        "I4",
        "a row is asked for although its table is empty",
        "store/prepared.py",
        "where(key == at, asked == at)",
        "where(key == asked)",
    ),
    on_postgres(
        "I7",
        "a refusal is given under the lock",
        "store/optimistic.py",
        "(psycopg.IntegrityError, LedgerError)",
        "psycopg.IntegrityError",
    ),
    on_postgres(
        "I6",
        "a step rests on the rounds it has seen",
        "measuring.py",
        '        "rounds_begun": charge.rounds_begun,\n',
        "",
    ),
]


def run(mutation: Mutation, copy: Path, database: str) -> tuple[bool, str]:
    """Apply a mutation to the copy, run the tests; returns whether it was caught, and by what."""
    kept = {edit.file: (copy / edit.file).read_text() for edit in mutation.edits}
    try:
        for edit in mutation.edits:
            path = copy / edit.file
            text, times = re.subn(edit.pattern, edit.replacement, path.read_text(), flags=re.S)
            if not times:
                return False, f"the guard is not where this script looks for it ({edit.file})"
            path.write_text(text)
        files = [f"tests/budget/{name}.py" for name in mutation.tests.split()]
        skipped = "postgres" if database == "sqlite" else "sqlite"
        told = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-x",
                "-m",
                "not slow",
                "-k",
                f"not {skipped}",
                *files,
            ],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": f"{copy}:{copy / 'plugins'}"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        for name, text in kept.items():
            (copy / name).write_text(text)
    found = re.search(r"^FAILED tests/budget/(\S+?)(?:\[| |$)", told.stdout, re.M)
    if told.returncode == 1 and found:
        return True, found.group(1)
    return False, told.stdout[-200:].strip()  # a test that cannot even start proves nothing


def main() -> int:
    """Run all mutations and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="guards whose name has this word")
    parser.add_argument("--database", choices=["sqlite", "postgres"], help="instead of each one's")
    told = parser.parse_args()
    survived = 0
    with tempfile.TemporaryDirectory(prefix="cusyn-mutations-") as folder:
        copy = Path(folder)
        for name in ("include", "plugins", "tests", "tools", "benchmarks"):
            ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", copy)
        print("| invariant | guard removed | caught by |\n|---|---|---|", flush=True)
        for mutation in MUTATIONS:
            if told.only not in mutation.guard:
                continue
            caught, by = run(mutation, copy, told.database or mutation.database)
            survived += not caught
            shown = f"`{by}`" if caught else f"**SURVIVED** {by}"
            print(f"| {mutation.invariant} | {mutation.guard} | {shown} |", flush=True)
    print(f"\n{survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
