"""Declared impossible combinations, kept out of the synthetic table.

The model is fitted as always; rows it draws that hold an impossible combination are drawn again.
That conditions the model on the declared facts and is post-processing: it costs no budget.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from include.config.constraints import Constraint, levels_of
from include.data.schema import Schema
from include.errors import CuSynError

_MAX_DRAWS = 40


def possible_rows(
    codes: npt.NDArray[Any], schema: Schema, constraints: Sequence[Constraint]
) -> npt.NDArray[np.bool_]:
    """Tell which rows hold no impossible combination.

    Args:
        codes: codes, shape (rows, columns), columns in schema order.
        schema: the declared domain.
        constraints: the dataset's; one that names a column the schema leaves out does not apply.

    Returns:
        A mask, shape (rows,).

    Privacy: post-processing (of synthetic rows).
    """
    order = {column.name: i for i, column in enumerate(schema)}
    possible = np.ones(len(codes), dtype=np.bool_)
    for constraint in constraints:
        if not set(constraint.never) <= set(order):
            continue
        met = np.ones(len(codes), dtype=np.bool_)
        for name, condition in constraint.never.items():
            column = schema.column(name)
            levels = levels_of(name, column.config, condition)
            missing = -1 if column.null_code is None else column.null_code
            wanted = [missing if level is None else level for level in levels]
            met &= np.isin(codes[:, order[name]], wanted)
        possible &= ~met
    return possible


def draw_possible(
    draw: Callable[[int, bytes], npt.NDArray[Any]],
    rows: int,
    seed: bytes,
    schema: Schema,
    constraints: Sequence[Constraint],
) -> npt.NDArray[Any]:
    """Draw synthetic rows without impossible combinations.

    Args:
        draw: draws (rows, columns) codes from the model for a number of rows and a seed.
        rows: how many rows are wanted.
        seed: public seed (of the transcript); each further draw uses one derived from it.
        schema: the declared domain.
        constraints: the dataset's impossible combinations; none draws once and changes nothing.

    Returns:
        Codes, shape (rows, columns).

    Raises:
        CuSynError: the constraints exclude nearly all that the model draws.

    Privacy: post-processing.
    """
    first = draw(rows, seed)
    if not constraints or rows == 0:
        return first
    parts = [first[possible_rows(first, schema, constraints)]]
    for attempt in range(1, _MAX_DRAWS):
        missing = rows - sum(len(part) for part in parts)
        if missing == 0:
            break
        fresh = draw(rows, hashlib.sha256(seed + attempt.to_bytes(4, "big")).digest())
        parts.append(fresh[possible_rows(fresh, schema, constraints)][:missing])
    found = np.concatenate(parts)
    if len(found) < rows:
        raise CuSynError(
            "the declared constraints exclude nearly every row that the model draws; check them "
            "for a contradiction, or measure their columns together as an interest query"
        )
    return found
