"""Exact figures exist for public data only, and are exact."""

from __future__ import annotations

import pandas as pd
import pytest

from include.config.datasets import DatasetConfig
from include.errors import CuSynError
from include.quality.internal import MARK, ProtectedDataError, internal_evaluation


class UntouchedFrame:
    """Rows that must not be read."""

    def __getattr__(self, name):
        raise AssertionError(f"a refused evaluation read the rows ({name})")

    def __len__(self):
        raise AssertionError("a refused evaluation counted the rows")


def dataset(**changes) -> DatasetConfig:
    body = {
        "dataset": "penguins",
        "populations": ["birds"],
        "privacy_unit": {"what": "bird", "max_rows": 1},
        "source": {"path": "x.csv"},
        "columns": {
            "species": {"type": "category", "values": ["a", "b"]},
            "weight": {"type": "integer", "min": 0, "max": 3},
        },
    }
    return DatasetConfig.model_validate({**body, **changes})


@pytest.mark.parametrize(
    ("changes", "datasets", "populations", "public", "words"),
    [
        ({}, {"penguins"}, set(), True, "is registered in the ledger"),
        ({"dataset": "copy"}, {"penguins"}, {"birds"}, True, "about birds, a population"),
        ({}, set(), set(), False, "is not declared public"),
    ],
)
def test_protected_data_are_refused_before_a_row_is_read(
    changes, datasets, populations, public, words
):
    with pytest.raises(ProtectedDataError, match=words) as fault:
        internal_evaluation(
            dataset(**changes),
            UntouchedFrame(),
            UntouchedFrame(),
            registered_datasets=datasets,
            registered_populations=populations,
            declared_public=public,
        )
    assert isinstance(fault.value, CuSynError)
    assert "\n" not in str(fault.value)


def test_public_data_are_compared_exactly():
    original = pd.DataFrame({"species": ["a", "a", "b", "b"], "weight": [0, 1, 2, 3]})
    synthetic = pd.DataFrame({"species": ["a", "a", "a", "b"], "weight": [0, 1, 2, 3]})
    found = internal_evaluation(
        dataset(),
        original,
        synthetic,
        registered_datasets={"other"},
        registered_populations={"people"},
        declared_public=True,
        interest=[("species", "weight")],
    )
    assert [(e.clique, e.tv) for e in found.columns] == [
        (("species",), pytest.approx(0.25)),
        (("weight",), pytest.approx(0.0)),
    ]
    assert found.pairs[0].tv == pytest.approx(0.25)
    assert found.interest == found.pairs
    assert found.mean_pair_tv == pytest.approx(0.25)
    assert found.to_dict()["mark"] == MARK == "internal"
    assert found.to_text().startswith("INTERNAL: ")
    assert "pair species x weight: 0.2500" in found.to_text()


def test_no_report_or_package_can_hold_an_internal_figure():
    import inspect

    from include.publishing import manifest, package, readme, registry
    from include.quality import fidelity, report

    for module in (manifest, package, readme, registry, fidelity, report):
        assert "quality.internal" not in inspect.getsource(module)
