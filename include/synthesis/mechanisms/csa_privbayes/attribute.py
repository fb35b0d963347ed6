"""What a change of the sensitive attribute alone would have done to a release, after the fact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from include.accounting import ONE, Event, format_amount
from include.synthesis.mechanisms.csa_privbayes.settings import Settings
from include.synthesis.transcript import Round, Transcript

NO_MORE = (
    "It is a figure after the fact, for this output: which tables hold the attribute was chosen "
    "privately. It compares with a change of this attribute alone, in all rows of one privacy "
    "unit; for several units it adds up. It does not say that the attribute cannot be inferred "
    "from others, does not bound any other attribute, and is no second guarantee: every privacy "
    "unit has the epsilon of the statement."
)


@dataclass(frozen=True)
class AttributeLoss:
    """The attribute-level figure of a release.

    Args:
        attribute: The sensitive attribute, S.
        ex_post_pico: Bound on the loss of this output, in units of 1e-12 of epsilon, rounded up.
        a_priori_pico: Bound known before: twice the pure epsilon of the plan, same units.

    Privacy: post-processing.
    """

    attribute: str
    ex_post_pico: int
    a_priori_pico: int

    def to_dict(self) -> dict[str, str]:
        """Describe the figure, with what it does not mean, in JSON types."""
        return {
            "attribute": self.attribute,
            "ex_post_loss_S": format_amount(self.ex_post_pico),
            "a_priori_bound": format_amount(self.a_priori_pico),
            "meaning": (
                f"Had only {self.attribute!r} of one privacy unit been different, the probability "
                "of this very release would have changed by a factor of at most e^ex_post_loss_S."
            ),
            "not": NO_MORE,
        }


def attribute_loss(
    settings: Settings, transcript: Transcript, plan_epsilon_pico: int | None
) -> AttributeLoss | None:
    """Bound the loss of a release under a change of S alone: ex_post_loss_S.

    A changed value is one removal and one addition, so each event that reads S counts twice its
    epsilon. A table without S and the row count do not change at all. Interrupted rounds count in
    full: what they would have measured is not known.

    Args:
        settings: The checked task.
        transcript: The finished measurement.
        plan_epsilon_pico: Pure epsilon of the plan in units of 1e-12; None under Gaussian noise.

    Returns:
        The figure; None without a sensitive attribute or under Gaussian noise.

    Source: docs/guarantee.md, "What the regions mean".

    Privacy: post-processing.
    """
    if settings.sensitive is None or plan_epsilon_pico is None:
        return None
    loss = _pure(transcript.burned)
    for turn in transcript.rounds:
        loss += _pure(turn.burned) + _pure(turn.events) * _reads(turn, settings.sensitive)
    return AttributeLoss(
        attribute=settings.sensitive,
        ex_post_pico=math.ceil(2 * loss * ONE),
        a_priori_pico=2 * plan_epsilon_pico,
    )


def _reads(turn: Round, sensitive: str) -> bool:
    if turn.edges:
        return any(column == sensitive for column, _ in turn.edges)
    if not turn.marginals:
        return True  # a selection compares scores that may hold S
    return any(sensitive in item.clique for item in turn.marginals)


def _pure(events: tuple[Event, ...]) -> Fraction:
    return sum((event.epsilon_pure or Fraction(0) for event in events), Fraction(0))
