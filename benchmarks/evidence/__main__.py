"""Make docs/evidence.md, its plots and the blocks of other pages that quote it.

python -m benchmarks.evidence [--no-plots]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.evidence.page import BLOCKS, page, with_block
from benchmarks.goals import main as keep_goals

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--no-plots", action="store_true", help="text only; needs no matplotlib")
    args = parser.parse_args(arguments)
    keep_goals()
    (ROOT / "docs" / "evidence.md").write_text(page(), encoding="utf-8")
    for name, block in BLOCKS.items():
        path = ROOT / name
        path.write_text(with_block(path.read_text(encoding="utf-8"), block), encoding="utf-8")
    if not args.no_plots:
        from benchmarks.evidence.plots import draw_all

        draw_all(ROOT / "docs" / "evidence")
    return 0


if __name__ == "__main__":
    sys.exit(main())
