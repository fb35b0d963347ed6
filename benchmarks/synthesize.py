"""One release from a CSV of integer codes, with real exact noise: the door for comparisons.

    python -m benchmarks.synthesize --csv F.csv --domain F.json --epsilon 1 --delta 1e-9 \\
        --mechanism aim --interest '[["age", "income"]]' --out OUT.csv --json

No ledger is charged: run it on public research data only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.runs import Run, peak_mb, run_release
from benchmarks.tables import read_codes, write_codes
from include.accounting import (
    AmountError,
    epsilon_from_rho,
    format_amount,
    parse_amount,
    parse_delta,
)
from include.errors import CuSynError
from include.synthesis import MECHANISM_NAMES, SynthesisTask, interest_errors


def build_parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthesize", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--csv", type=Path, required=True, help="integer codes, with a header")
    parser.add_argument("--domain", type=Path, required=True, help="JSON: column to cells")
    parser.add_argument("--epsilon", required=True, help='decimal text such as "1"')
    parser.add_argument("--delta", required=True, help='a power of ten such as "1e-9"')
    parser.add_argument("--mechanism", required=True, choices=sorted(MECHANISM_NAMES))
    parser.add_argument("--interest", default="[]", help="JSON list of column lists, or its file")
    parser.add_argument("--workload", default="all 2-way", help='"all k-way", or JSON')
    parser.add_argument("--options", default="{}", help="JSON options of the mechanism")
    parser.add_argument("--max-rows", type=int, default=1, help="rows one privacy unit may own")
    parser.add_argument("--rows", type=int, help="public row count; noisy by default")
    parser.add_argument("--out", type=Path, required=True, help="synthetic codes as CSV")
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    args = build_parser().parse_args(arguments)
    try:
        facts = synthesize(args)
    except (CuSynError, OSError, json.JSONDecodeError) as fault:
        print(f"benchmarks.synthesize: {fault}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(facts, indent=1))
    else:
        print(
            f"{facts['rows']} rows by {facts['mechanism']} at epsilon {facts['epsilon']}: "
            f"{facts['cpu_s']['total']:.2f} CPU s, {facts['peak_mb']:.0f} MB -> {args.out}"
        )
    return 0


def synthesize(args: argparse.Namespace) -> dict[str, Any]:
    """Make the release and return its facts; none of them is read off the raw table."""
    begun = time.process_time()
    codes, domain = read_codes(args.csv, args.domain)
    loaded = time.process_time() - begun
    workload = args.workload
    task = SynthesisTask.build(
        domain,
        workload=workload if workload.startswith("all ") else _json(workload),
        interest=_json(args.interest),
        options=_json(args.options),
        max_rows=args.max_rows,
        expected_rows=args.rows,
    )
    run = run_release(
        args.mechanism,
        codes,
        task,
        parse_amount(args.epsilon, name="--epsilon"),
        _delta(args.delta),
        rows=args.rows,
    )
    write_codes(args.out, domain, run.rows)
    return _facts(run, loaded)


def _facts(run: Run, loaded: float) -> dict[str, Any]:
    plan = run.plan
    return {
        "mechanism": plan.mechanism,
        "epsilon": format_amount(plan.epsilon_pico),
        "delta": f"1e-{plan.delta_exponent}",
        "rho_planned": format_amount(plan.cost.rho_pico),
        "epsilon_spent": format_amount(epsilon_from_rho(plan.cost.rho_pico, plan.delta_exponent)),
        "rows": len(run.rows),
        "rounds": len(run.transcript.rounds),
        "events": len(run.transcript.events),
        "model_mb": round(run.model.size_mb, 4),
        "interest": [error.to_dict() for error in interest_errors(run.transcript, plan, run.model)],
        "warnings": list(plan.warnings),
        "cpu_s": {"load": loaded, **run.cpu_s, "total": run.cpu_total_s},
        "wall_s": run.wall_s,
        "peak_mb": peak_mb(),
        "transcript": run.transcript.digest,
    }


def _json(text: str) -> Any:
    """Read JSON from the argument itself or from the file it names."""
    if text.lstrip()[:1] in {"[", "{"}:
        return json.loads(text)
    return json.loads(Path(text).read_text(encoding="utf-8"))


def _delta(text: str) -> int:
    """Read delta also as other programs print powers of ten (1e-09, 0.000000001)."""
    try:
        return parse_delta(f"1e-{-round(_log10(text))}", name="--delta")
    except (ValueError, OverflowError) as fault:
        if isinstance(fault, AmountError):
            raise
        return parse_delta(text, name="--delta")


def _log10(text: str) -> float:
    from decimal import Decimal, InvalidOperation

    try:
        power = Decimal(text).log10()
    except InvalidOperation:
        raise ValueError(text) from None
    if power != power.to_integral_value():
        raise ValueError(text)
    return float(power)


if __name__ == "__main__":
    sys.exit(main())
