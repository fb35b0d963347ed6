from __future__ import annotations

from typing import Any

import pytest

from include.config import DatasetConfig
from include.data.schema import Schema

BASE: dict[str, Any] = {
    "dataset": "d",
    "populations": ["p"],
    "privacy_unit": {"what": "person", "max_rows": 1},
    "source": {"path": "x.csv"},
}


def dataset(columns: dict[str, Any], **more: Any) -> DatasetConfig:
    return DatasetConfig.model_validate({**BASE, "columns": columns, **more})


def schema(columns: dict[str, Any], **more: Any) -> Schema:
    return Schema.from_config(dataset(columns, **more))


@pytest.fixture
def key() -> bytes:
    return bytes(range(32))
