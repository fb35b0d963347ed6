"""Train on synthetic rows, test on real ones: income of Adult by two classifiers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.adult import SENSITIVE, split
from benchmarks.machine import stamp
from benchmarks.paper.research import DELTA_EXPONENT, table
from benchmarks.runs import run_release
from include.accounting import parse_amount
from include.synthesis import SynthesisTask

LABEL = SENSITIVE
TRAINED_ON = (
    "real", "independent", "aim", "aim_interest", "mwem_pgm", "mwem_pgm_interest", "privbayes",
    "csa_privbayes",
)  # fmt: skip
MODELS = ("logistic", "boosting")
EPSILONS = ("1", "0.2")
KEY = ("trained_on", "epsilon", "seed")
FIELDS = (
    *KEY,
    *(f"{what}_{model}" for model in MODELS for what in ("accuracy", "auc")),
    *("majority", "cpu_s", "date", "versions", "machine"),
)


@dataclass(frozen=True)
class Training:
    """One synthetic table, or the real one, for training."""

    trained_on: str
    epsilon: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """The cell as the results file spells it."""
        return (self.trained_on, self.epsilon, str(self.seed))


def trainings(seeds: int, *, quick: bool) -> Iterator[Training]:
    """List the trainings, epsilon 1 first."""
    for epsilon in EPSILONS[:1] if quick else EPSILONS:
        for seed in range(seeds):
            for name in TRAINED_ON:
                if name != "real" or epsilon == EPSILONS[0]:
                    yield Training(name, epsilon, seed)


def run_training(cell: Training, folder: Path) -> dict[str, Any]:
    """Make the synthetic table from four fifths of Adult and test on the remaining fifth."""
    data = table(folder, "adult")
    order = np.random.default_rng(0).permutation(len(data.codes))
    train, test = split(data.codes[order], cell.seed)
    seconds = 0.0
    if cell.trained_on != "real":
        mechanism, task = _task(cell.trained_on, data.domain)
        epsilon = parse_amount(cell.epsilon, name="epsilon")
        run = run_release(mechanism, train, task, epsilon, DELTA_EXPONENT)
        train, seconds = run.rows.astype(np.int64), run.cpu_total_s
    at = list(data.domain).index(LABEL)
    share = float(test[:, at].mean())
    return (
        dict(zip(KEY, cell.key, strict=True))
        | scores(train, test, data.domain, at)
        | {"majority": f"{max(share, 1 - share):.5f}", "cpu_s": f"{seconds:.2f}"}
        | stamp("scikit-learn")
    )


def _task(name: str, domain: dict[str, int]) -> tuple[str, SynthesisTask]:
    """Return mechanism and task; `_interest` names the pairs of the label with every column."""
    if name == "independent":
        return "aim", SynthesisTask.build(domain, workload="all 1-way")
    if name == "csa_privbayes":
        return name, SynthesisTask.build(domain, options={"sensitive": LABEL})
    mechanism = name.removesuffix("_interest")
    pairs = [(column, LABEL) for column in domain if column != LABEL]
    return mechanism, SynthesisTask.build(domain, interest=pairs if mechanism != name else [])


def scores(
    train: NDArray[Any], test: NDArray[Any], domain: dict[str, int], at: int
) -> dict[str, str]:
    """Return accuracy and AUC of both classifiers on the test rows.

    A training table with one class only is no better than a constant: AUC one half.
    """
    from sklearn.metrics import accuracy_score, roc_auc_score

    found = {}
    for name in MODELS:
        chance = _chances(name, train, test, domain, at)
        truth = test[:, at]
        found[f"accuracy_{name}"] = f"{accuracy_score(truth, chance > 0.5):.5f}"
        found[f"auc_{name}"] = f"{roc_auc_score(truth, chance):.5f}"
    return found


def _chances(
    name: str, train: NDArray[Any], test: NDArray[Any], domain: dict[str, int], at: int
) -> NDArray[Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    labels = train[:, at]
    if len(np.unique(labels)) < 2:
        return np.full(len(test), float(labels[0]) if len(labels) else 0.0)
    features, asked = np.delete(train, at, axis=1), np.delete(test, at, axis=1)
    if name == "boosting":
        trees = HistGradientBoostingClassifier(random_state=0).fit(features, labels)
        return np.asarray(trees.predict_proba(asked)[:, 1])
    encoder = OneHotEncoder(categories=[np.arange(n) for c, n in domain.items() if c != LABEL])
    machine = LogisticRegression(C=1.0, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(encoder.fit_transform(features), labels)
    return np.asarray(machine.predict_proba(encoder.transform(asked))[:, 1])
