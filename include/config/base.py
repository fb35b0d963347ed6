"""What all configuration models share: strict keys, amounts as text, faults that carry the fix."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from include.accounting.amounts import AmountError, parse_amount, parse_delta
from include.config.errors import did_you_mean, quoted

# Names that become DAG ids, folders and ledger keys.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,79}")
# Characters that reorder or hide text on a page: two columns could look like one.
_HIDING = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}


def fault(sentence: str) -> NoReturn:
    """Raise a validation error whose text is already "fault; fix".

    Raises:
        PydanticCustomError: always.

    Privacy: ledger only.
    """
    raise PydanticCustomError("declared", "{sentence}", {"sentence": sentence})


class ConfigModel(BaseModel):
    """Base of every configuration model: frozen, and an unknown key is a fault with a suggestion.

    Privacy: ledger only.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in data:
                if key not in cls.model_fields:
                    fault(f"unknown key {quoted(key)}; {did_you_mean(str(key), cls.model_fields)}")
        elif not isinstance(data, BaseModel):
            fault("expected a block of keys; indent `key: value` lines under it")
        return data


def _amount_text(value: Any) -> str:
    if isinstance(value, float):
        fault(_float_fault(value) + '; write a decimal in quotes, as in "0.5"')
    try:
        parse_amount(value, name="amount")
    except AmountError as error:
        fault(_strip_name(error))
    return str(value)


def _float_fault(value: float) -> str:
    """Name the fault of a number that YAML has already turned into a binary float."""
    if math.isnan(value):
        return "not a number (NaN)"
    if math.isinf(value):
        return "infinite"
    if value < 0 or math.copysign(1.0, value) < 0:
        return f"{value!r} carries a sign"
    return f"{value!r} without quotes is read as a binary float, which is not exact"


def _delta_text(value: Any) -> str:
    if isinstance(value, float):
        fault('a number without quotes is read as a binary float; write it as "1e-9"')
    try:
        parse_delta(value, name="delta")
    except AmountError as error:
        fault(_strip_name(error))
    return str(value)


def _strip_name(error: AmountError) -> str:
    """The key stands before the sentence already; do not say it twice."""
    return str(error).split(": ", 1)[-1].rstrip(".")


def _identifier(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        fault(
            f"{quoted(value)} is not a usable name; start with a letter and use at most 80 "
            "letters, digits, '_', '-' and '.' (no spaces)"
        )
    return str(value)


def check_column_name(value: Any) -> str:
    """Return a column's name in Unicode form NFC, or raise the fault by name.

    Any script is accepted; what cannot be told apart on a page is not.

    Privacy: ledger only.
    """
    if not isinstance(value, str):
        fault(f"the column name {quoted(value)} is not text; write it in quotes")
    if not value.strip():
        fault("a column name is empty; give it a name (source_column may point at the source's)")
    if any(unicodedata.category(ch) in _HIDING for ch in value):
        fault(
            f"the column name {quoted(value)} holds a line break or an invisible character; "
            "choose a plain name and point source_column at the source's"
        )
    if value != value.strip():
        fault(
            f"the column name {quoted(value)} begins or ends with a space; choose a plain name "
            "and point source_column at the source's"
        )
    if len(value) > 120:
        fault("a column name is longer than 120 characters; choose a shorter one")
    return unicodedata.normalize("NFC", value)


def column_key(name: str) -> str:
    """Return the form under which two column names count as the same.

    Privacy: ledger only.
    """
    return unicodedata.normalize("NFKC", name).casefold()


Amount = Annotated[str, BeforeValidator(_amount_text)]
Delta = Annotated[str, BeforeValidator(_delta_text)]
Identifier = Annotated[str, BeforeValidator(_identifier)]
ColumnName = Annotated[str, BeforeValidator(check_column_name)]
