"""What noise will do to a network, said before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_UP, Context
from fractions import Fraction
from typing import Any

from include.accounting import ONE
from include.synthesis.mechanisms.csa_privbayes.quantiles import LABEL
from include.synthesis.mechanisms.csa_privbayes.settings import Settings
from include.synthesis.noise import laplace_deviation, laplace_scale
from include.synthesis.plan import Prediction, noise_tv


def warnings(
    settings: Settings, parts: Mapping[str, Any], epsilon_pico: int
) -> tuple[Prediction, ...]:
    """List what noise will spoil: the edges of bins, and the network itself.

    Args:
        settings: The checked task.
        parts: The plan's parameters.
        epsilon_pico: Granted epsilon in units of 1e-12.

    Returns:
        Predictions with a warning each; nothing where no public row count is known.

    Privacy: ledger only.
    """
    return (
        *_blurred(settings, parts, epsilon_pico),
        *_swamped(settings, parts, epsilon_pico),
    )


def _blurred(
    settings: Settings, parts: Mapping[str, Any], epsilon_pico: int
) -> tuple[Prediction, ...]:
    """Warn of each column whose edges will typically be off by more than half a bin.

    Source: over edges at evenly spread ranks the exponential mechanism errs by 2 D / e rows on
    average, D being the sensitivity of the rank error.
    """
    rows = settings.public_rows or settings.task.expected_rows
    if rows is None:
        return ()
    found = []
    for name, wanted in settings.bins.items():
        reach = 2 * (1 - 1 / wanted.bins) * settings.task.max_rows / float(parts[LABEL])
        half = rows / (2 * wanted.bins)
        if reach > half:
            usable = _short(epsilon_pico / ONE * reach / half)
            warning = (
                f"Noise will place the edges of {name}: with about {rows} rows a quantile is "
                f"selected {reach:.3g} rows off on average, and half a bin has {half:.3g}. It "
                f"becomes useful at about epsilon {usable}, or with fewer bins; declared bins cost "
                "nothing."
            )
            found.append(Prediction((name,), wanted.bins, reach, None, usable, warning))
    return tuple(found)


def _swamped(
    settings: Settings, parts: Mapping[str, Any], epsilon_pico: int
) -> tuple[Prediction, ...]:
    """Warn, of the smallest pair, where no two columns can be measured together usefully."""
    domain = settings.task.domain
    rows = settings.public_rows or settings.task.expected_rows
    if rows is None:
        return ()
    useful = rows * float(parts["useful_cells_per_row"])
    pair = tuple(sorted(domain, key=domain.__getitem__)[:2])
    cells = settings.task.cells(pair)
    if cells <= useful:
        return ()
    tables, rows_a_unit = len(domain), settings.task.max_rows
    pure = parts["block_epsilon_pico"]
    if pure is None:
        rho = Fraction(parts["block_rho_pico"], ONE)
        sigma = rows_a_unit * math.sqrt(tables / (2 * float(rho)))
    else:
        sigma = laplace_deviation(laplace_scale(pure / ONE / tables, rows_a_unit))
    usable = _short(epsilon_pico / ONE * cells / useful)
    warning = (
        f"Noise will swamp every pair of columns: with about {rows} rows a table of up to "
        f"{useful:.3g} cells is useful and the smallest pair has {cells}"
        + (". " if settings.forced else ", so columns would be drawn without any relation. ")
        + f"It becomes useful at about epsilon {usable}, or with fewer or coarser columns."
    )
    tv = noise_tv(sigma, cells, rows)
    return (Prediction(pair, cells, sigma, tv, usable, warning),)


def _short(epsilon: float) -> str:
    """Round an epsilon up to two digits, as text a person can ask for."""
    needed = Context(prec=2, rounding=ROUND_UP).create_decimal(epsilon)
    return format(needed.normalize(), "f")
