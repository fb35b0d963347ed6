"""A small made-up world of a steward's: a survey of a few hundred rows, a pool, one release."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

YEARS = (2020, 2021, 2022)
DATES = [f"{year}-12-31" for year in YEARS]

DATASET: dict[str, Any] = {
    "dataset": "pets",
    "populations": ["keepers"],
    "privacy_unit": {"what": "person", "max_rows": 1},
    "expected_rows": 300,
    "licence": "made up",
    "partition_columns": ["year"],
    "columns": {
        "animal": {"type": "category", "values": ["cat", "dog", "newt"], "nullable": True},
        "weight": {
            "type": "integer",
            "min": 0,
            "max": 40,
            "bins": [0, 5, 10, 20],
            "outside": "clamp",
            "nullable": True,
        },
        "indoors": {"type": "boolean"},
    },
}

BUDGETS: dict[str, Any] = {
    "populations": {
        "keepers": {
            "epsilon": "10",
            "delta": "1e-9",
            "accounting": "zcdp",
            "per_operation_limit": "2",
            "privacy_unit": "person",
        }
    },
    "users": {"vets": {"datasets": {"pets": {"epsilon": "6", "per_request": "1"}}}},
    "airflow_users": {"local": ["vets"], "alice": ["vets"]},
}

RELEASE: dict[str, Any] = {
    "release": "pets_by_year",
    "dataset": "pets",
    "requester": "vets",
    "schedule": {"dates": DATES},
    "partition": {"column": "year", "value": "{{ logical_date.year }}"},
    "mechanism": "mwem_pgm",
    "epsilon": "1",
    "accept_at_least": "0.5",
    "interest": [["animal", "indoors"]],
    "rows": 120,
}


def rows(count: int = 300, *, shift: int = 0) -> list[dict[str, Any]]:
    """Return made-up rows; another `shift` gives another table of the same form."""
    animals = ["cat", "dog", "newt", None]
    return [
        {
            "year": YEARS[i % 3],
            "animal": animals[(i * 7 + shift + i // 5) % 4],
            "weight": None if (i + shift) % 11 == 0 else (i * 13 + shift) % 38,
            "indoors": (i // 3 + shift) % 2 == 0,
        }
        for i in range(count)
    ]


def write_source(path: Path, table: list[dict[str, Any]]) -> None:
    """Write rows as the declared Parquet source."""
    import pandas as pd

    frame = pd.DataFrame(table)
    for name in ("weight", "year"):
        if all(value is None or isinstance(value, int) for value in frame[name].tolist()):
            frame[name] = frame[name].astype("Int64")
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path, index=False)


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of nested declarations with some keys changed."""
    result = copy.deepcopy(dict(base))
    for key, value in changes.items():
        old = result.get(key)
        both = isinstance(old, dict) and isinstance(value, Mapping)
        result[key] = merged(old, value) if both else copy.deepcopy(value)
    return result


def write_yaml(path: Path, content: Mapping[str, Any]) -> Path:
    """Write one file of the steward's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")
    return path
