"""The form of `manual_release`: choices that Airflow enforces, amounts that the first task checks.

Airflow tells a text that misses a schema's pattern in seven lines of JSON Schema. `load` tells the
same fault in one sentence, before anything is read or charged, so amounts have no pattern here.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from include.config.loader import list_dataset_names, load_budgets
from include.config.requests import MECHANISMS
from include.errors import CuSynError
from include.settings import load_settings

# What the accountant accepts (docs/guarantee.md): decimal text, exact, never a binary float.
AMOUNT = "A decimal above 0 such as 1 or 0.25: up to 6 digits, then up to 12 after the point."


def manual_params() -> dict[str, Param]:
    """Return the form's fields, choices read from the steward's files.

    A broken `budgets.yaml` leaves the choices empty; the release DAGs show what is wrong with it.

    Privacy: ledger only.
    """
    config_dir = load_settings().config_dir
    datasets = list_dataset_names(config_dir)
    try:
        requesters = sorted(load_budgets(config_dir).users)
    except CuSynError:
        requesters = []
    return {
        "dataset": _choice(datasets, "The registered dataset to release."),
        "requester": _choice(requesters, "In whose name: this user's budget pool is charged."),
        "period": Param(
            "",
            type="string",
            title="Period",
            description="The name of this release's period: letters, digits, '.', '_' and '-', "
            "e.g. 2026-11-30. A period is released once: asking again returns the same release "
            "and charges nothing.",
        ),
        "mechanism": Param(
            MECHANISMS[0],
            type="string",
            enum=list(MECHANISMS),
            description="mwem_pgm: quick, good for a few interest queries; aim: best overall; "
            "csa_privbayes and privbayes: pure differential privacy, a Bayesian network.",
        ),
        "epsilon": Param(
            "1",
            type="string",
            description=f"The privacy budget asked for; smaller is more private. {AMOUNT}",
        ),
        "accept_at_least": Param(
            "0.5",
            type="string",
            description="If less can be granted, the answer is no and nothing is charged. Not "
            f"above epsilon. {AMOUNT}",
        ),
        "interest": Param(
            [],
            type="array",
            items={"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 4},
            description='The tables you care about most, e.g. [["educ", "income"]]; each gets a '
            "measurement of its own.",
        ),
        "options": Param(
            {},
            type="object",
            description='Options of the mechanism, e.g. {"rounds": 8, "interest_share": 0.6}; '
            "none are needed.",
        ),
        "supersedes": Param(
            None,
            type=["null", "string"],
            description="The id of a published release that this one replaces, if any.",
        ),
        "dry_run": Param(
            False,
            type="boolean",
            description="Only say what it would cost and how exact it would be; spends nothing.",
        ),
        "partition_column": Param(
            None, type=["null", "string"], description="Only rows where this column ..."
        ),
        "partition_value": Param(
            None, type=["null", "string"], description="... has this value, e.g. year and 1994."
        ),
    }


def manual_request() -> dict[str, Any]:
    """Return the operators' request: every field of the form, rendered as text.

    Privacy: ledger only.
    """
    return {
        "form": {name: f"{{{{ params.{name} | tojson }}}}" for name in manual_params()},
        "period": "{{ params.period }}",
    }


def _choice(values: list[str], description: str) -> Param:
    if not values:
        return Param("", type="string", description=description)
    return Param(values[0], type="string", enum=values, description=description)
