"""The CSAPrivBayes experiments' table: ten attributes of Adult, a fixed sample, declared edges."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import read_codes

SENSITIVE = "income>50K"
SAMPLE_SEED = 0
SAMPLE_ROWS = 24_000
FOLDS = 5

COLUMNS = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "sex",
    SENSITIVE,
    "age",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
)
# Lower ends in codes of the public file, which has 32 equal bins for each of the four: declared
# here once and never learnt by a release.
EDGES = {
    "age": tuple(range(0, 32, 2)),
    "capital-gain": (0, 1, 2, 4, 8, 16),
    "capital-loss": tuple(range(0, 32, 2)),
    "hours-per-week": tuple(range(0, 32, 4)),
}

Codes = NDArray[np.int64]


def data_folder() -> Path:
    """Find the research data; ends the command, loudly and without an error, where there are none.

    Privacy: ledger only.
    """
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CUSYN_RESEARCH_DATA", beside))
    if not (folder / "adult.csv").exists():
        print(
            f"SKIPPED: no adult.csv in {folder}. The experiments need public research data: set "
            "CUSYN_RESEARCH_DATA to a folder with adult.csv and adult-domain.json.",
            file=sys.stderr,
        )
        raise SystemExit(0)
    return folder


def read_adult(folder: Path) -> tuple[Codes, dict[str, int]]:
    """Read the sample: 24,000 rows in a fixed random order, ten attributes, edges applied."""
    codes, domain = read_codes(folder / "adult.csv", folder / "adult-domain.json")
    order = np.random.default_rng(SAMPLE_SEED).permutation(len(codes))[:SAMPLE_ROWS]
    places = [list(domain).index(name) for name in COLUMNS]
    codes = codes[order][:, places]
    cells = {name: domain[name] for name in COLUMNS}
    for name, edges in EDGES.items():
        at = COLUMNS.index(name)
        codes[:, at] = np.searchsorted(edges, codes[:, at], side="right") - 1
        cells[name] = len(edges)
    return codes, cells


def split(codes: Codes, seed: int) -> tuple[Codes, Codes]:
    """Split 80/20: seed s tests on fold s mod 5 (five-fold cross-validation)."""
    fold = np.arange(len(codes)) % FOLDS == seed % FOLDS
    return codes[~fold], codes[fold]


def misclassification(train: Codes, test: Codes, domain: dict[str, int]) -> float:
    """Train a linear SVM on one table, test it on another; both are codes, one-hot encoded."""
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.svm import LinearSVC

    at = COLUMNS.index(SENSITIVE)
    truth, labels = test[:, at], train[:, at]
    if len(np.unique(labels)) < 2:  # a table without the rarer class: its one class is the answer
        return float((truth != (labels[0] if len(labels) else 0)).mean())
    others = [np.arange(n) for name, n in domain.items() if name != SENSITIVE]
    encoder = OneHotEncoder(categories=others)
    features = encoder.fit_transform(np.delete(train, at, axis=1).astype(np.int64))
    machine = LinearSVC(C=0.1, dual=False).fit(features, labels)
    shown = machine.predict(encoder.transform(np.delete(test, at, axis=1)))
    return float((shown != truth).mean())
