"""What a recipient runs, who has neither Airflow nor a database: nothing heavier is imported."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from include.cli.answer import Answer
from include.errors import CuSynError
from include.settings import Settings


def package(args: argparse.Namespace, settings: Settings) -> Answer:
    """Check a release package.

    Raises:
        CuSynError: the key that was named cannot be read.

    Privacy: post-processing.
    """
    from include.publishing.verify import sound, verify_package

    key = _read_key(args.key) if args.key else None
    findings = verify_package(Path(args.path), trusted_key=key)
    lines = [f"{one.level:>7}  {one.subject}: {one.words}" for one in findings]
    data = {"findings": [asdict(one) for one in findings], "sound": sound(findings)}
    return Answer(data, "\n".join(lines), ok=sound(findings))


def _read_key(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as fault:
        raise CuSynError(f"{path}: the key cannot be read ({fault.strerror})") from None
