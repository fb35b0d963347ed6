"""The steward's YAML: what is declared, and the plain sentence that says what is wrong with it.

Importing this package is cheap (pydantic and yaml only): it runs each time a DAG file is parsed.
"""

from __future__ import annotations

from include.config.checks import cross_check
from include.config.columns import (
    BooleanColumn,
    CategoryColumn,
    ColumnConfig,
    DateColumn,
    DateTimeColumn,
    FloatColumn,
    IntegerColumn,
    KeyColumn,
)
from include.config.datasets import DatasetConfig, SourceConfig
from include.config.digest import config_digest
from include.config.errors import ConfigError
from include.config.loader import (
    CheckedRelease,
    list_dataset_files,
    list_release_files,
    load_budgets,
    load_checked,
    load_dataset,
    load_release,
    parse_request,
)
from include.config.requests import (
    BudgetsConfig,
    PartitionConfig,
    PopulationConfig,
    PublishConfig,
    ReleaseConfig,
    ScheduleDates,
    UserConfig,
    UserPoolConfig,
)
from include.config.units import PrivacyUnit

__all__ = [
    "BooleanColumn",
    "BudgetsConfig",
    "CategoryColumn",
    "CheckedRelease",
    "ColumnConfig",
    "ConfigError",
    "DatasetConfig",
    "DateColumn",
    "DateTimeColumn",
    "FloatColumn",
    "IntegerColumn",
    "KeyColumn",
    "PartitionConfig",
    "PopulationConfig",
    "PrivacyUnit",
    "PublishConfig",
    "ReleaseConfig",
    "ScheduleDates",
    "SourceConfig",
    "UserConfig",
    "UserPoolConfig",
    "config_digest",
    "cross_check",
    "list_dataset_files",
    "list_release_files",
    "load_budgets",
    "load_checked",
    "load_dataset",
    "load_release",
    "parse_request",
]
