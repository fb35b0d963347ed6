"""Mechanisms by the name a release file uses."""

from __future__ import annotations

from collections.abc import Callable

from include.accounting import Cost
from include.synthesis.mechanisms.aim import Aim
from include.synthesis.mechanisms.base import Synthesizer
from include.synthesis.mechanisms.csa_privbayes import CsaPrivBayes, PrivBayes
from include.synthesis.mechanisms.mwem_pgm import MwemPgm
from include.synthesis.task import SynthesisTask, TaskError

_MECHANISMS: dict[str, type[Synthesizer]] = {
    cls.name: cls for cls in (Aim, MwemPgm, CsaPrivBayes, PrivBayes)
}

MECHANISM_NAMES = tuple(_MECHANISMS)


def synthesizer(name: str) -> Synthesizer:
    """Construct a mechanism by name.

    Args:
        name: Name as in a release file.

    Returns:
        The mechanism.

    Raises:
        TaskError: The name is unknown; the sentence lists the known ones.

    Privacy: ledger only.
    """
    cls = _MECHANISMS.get(name)
    if cls is None:
        raise TaskError(
            f"mechanism: {name!r} is not known; use one of {', '.join(sorted(_MECHANISMS))}."
        )
    return cls()


def cost_of(task: SynthesisTask, mechanism: str, delta_exponent: int) -> Callable[[int], Cost]:
    """Return the exact cost of a mechanism's plan as a fast function of the granted epsilon.

    Args:
        task: What is asked for.
        mechanism: Name of the mechanism.
        delta_exponent: N of the budget pool's delta = 1e-N.

    Returns:
        Function from epsilon in units of 1e-12 to the cost that its plan will have.

    Raises:
        TaskError: The mechanism, an option or a query is wrong.
        PlanError: The task fits no grant.

    Privacy: ledger only.
    """
    return synthesizer(mechanism).cost_of(task, delta_exponent)
