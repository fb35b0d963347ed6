"""What a mechanism did to the data, as the accountant sees it: one record for each primitive call.

Events, not epsilons, are what a ledger keeps: a better accountant can re-read history later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from include.accounting.amounts import ONE
from include.errors import CuSynError

_CONTEXT = Context(prec=60)
_EXP_MARGIN = Decimal("1e-50")


class EventError(CuSynError, ValueError):
    """An event was described with parameters no mechanism can have.

    Privacy: ledger only.
    """


@dataclass(frozen=True)
class Gaussian:
    """Discrete Gaussian noise of standard deviation `sigma` on integer counts.

    Args:
        sigma: Noise scale in rows, above 0.
        sensitivity: L2 sensitivity in rows of the whole vector under add/remove of one unit.
        label: What the measurement was for (public).

    Source: Canonne, Kamath and Steinke 2020, Theorem 4: rho = sensitivity^2 / (2 sigma^2).

    Privacy: ledger only.
    """

    kind: ClassVar[str] = "gaussian"
    sigma: float | int
    sensitivity: int = 1
    label: str = ""

    def __post_init__(self) -> None:
        _require_positive(self.sigma, "sigma")
        _require_positive(self.sensitivity, "sensitivity")

    @property
    def rho(self) -> Fraction:
        """Exact zCDP cost."""
        return Fraction(self.sensitivity) ** 2 / (2 * Fraction(self.sigma) ** 2)

    @property
    def epsilon_pure(self) -> Fraction | None:
        """Gaussian noise is never pure DP."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Describe the event in JSON types that read back exactly."""
        return {
            "kind": self.kind,
            "sigma": self.sigma,
            "sensitivity": self.sensitivity,
            "label": self.label,
        }


@dataclass(frozen=True)
class ExponentialMechanism:
    """A selection by the exact exponential mechanism (Gumbel noise on the scores).

    Only this form is bounded-range: permute-and-flip (exponential noise) costs epsilon^2 / 2.

    Args:
        epsilon: The pure-DP parameter of the selection, above 0.
        label: What was selected (public).

    Source: Cesar and Rogers 2021, Lemma 3.4 (with Dong, Durfee and Rogers 2020): epsilon^2 / 8.

    Privacy: ledger only.
    """

    kind: ClassVar[str] = "exponential_mechanism"
    epsilon: float | int
    label: str = ""

    def __post_init__(self) -> None:
        _require_positive(self.epsilon, "epsilon")

    @property
    def rho(self) -> Fraction:
        """Exact zCDP cost."""
        return Fraction(self.epsilon) ** 2 / 8

    @property
    def epsilon_pure(self) -> Fraction | None:
        """Pure-DP cost."""
        return Fraction(self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Describe the event in JSON types that read back exactly."""
        return {"kind": self.kind, "epsilon": self.epsilon, "label": self.label}


@dataclass(frozen=True)
class DiscreteLaplace:
    """Discrete Laplace noise on every cell of a histogram, epsilon-DP in all.

    Args:
        epsilon: L1 sensitivity over noise scale, above 0.
        label: What the measurement was for (public).

    Source: any epsilon-DP mechanism is epsilon tanh(epsilon / 2)-zCDP, and here it is attained.

    Privacy: ledger only.
    """

    kind: ClassVar[str] = "discrete_laplace"
    epsilon: float | int
    label: str = ""

    def __post_init__(self) -> None:
        _require_positive(self.epsilon, "epsilon")

    @property
    def rho(self) -> Fraction:
        """Upper bound of epsilon tanh(epsilon / 2), within 1e-40."""
        return _epsilon_tanh_half(Fraction(self.epsilon))

    @property
    def epsilon_pure(self) -> Fraction | None:
        """Pure-DP cost."""
        return Fraction(self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Describe the event in JSON types that read back exactly."""
        return {"kind": self.kind, "epsilon": self.epsilon, "label": self.label}


@dataclass(frozen=True)
class AdaptiveBlock:
    """A ceiling for events chosen along the way: what a zCDP filter of this size may let through.

    A plan holds it in place of rounds whose noise scales depend on earlier noisy answers.

    Args:
        rho_pico: Size of the filter in units of 1e-12, above 0.
        label: What the rounds are for (public).
        epsilon_pico: Pure-DP ceiling in units of 1e-12, for rounds of pure mechanisms only; None
            where the rounds may be Gaussian.

    Source: Whitehouse et al. 2023, Theorem 1: a filter over adaptively chosen zCDP amounts.

    Privacy: ledger only.
    """

    kind: ClassVar[str] = "adaptive_block"
    rho_pico: int
    label: str = ""
    epsilon_pico: int | None = None

    def __post_init__(self) -> None:
        if type(self.rho_pico) is not int or self.rho_pico <= 0:
            raise EventError("rho_pico of an adaptive block must be an int above 0.")
        pure = self.epsilon_pico
        if pure is not None and (type(pure) is not int or pure <= 0):
            raise EventError("epsilon_pico of an adaptive block must be an int above 0, or None.")

    @property
    def rho(self) -> Fraction:
        """Exact zCDP ceiling."""
        return Fraction(self.rho_pico, ONE)

    @property
    def epsilon_pure(self) -> Fraction | None:
        """Exact pure-DP ceiling; None where the rounds may be Gaussian."""
        return None if self.epsilon_pico is None else Fraction(self.epsilon_pico, ONE)

    def to_dict(self) -> dict[str, Any]:
        """Describe the event in JSON types that read back exactly."""
        record = {"kind": self.kind, "rho_pico": self.rho_pico, "label": self.label}
        return record if self.epsilon_pico is None else record | {"epsilon_pico": self.epsilon_pico}


Event = Gaussian | ExponentialMechanism | DiscreteLaplace | AdaptiveBlock

_KINDS: dict[str, type[Event]] = {
    cls.kind: cls for cls in (Gaussian, ExponentialMechanism, DiscreteLaplace, AdaptiveBlock)
}


def event_from_dict(record: Mapping[str, Any]) -> Event:
    """Read an event back from what its `to_dict` wrote.

    Args:
        record: The dict, also after a round trip through JSON.

    Returns:
        An event equal to the one written.

    Raises:
        EventError: The kind is unknown or a parameter is missing, surplus or impossible.

    Privacy: ledger only.
    """
    fields = dict(record)
    kind = fields.pop("kind", None)
    cls = _KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise EventError(f"Unknown event kind {kind!r}; known are {', '.join(sorted(_KINDS))}.")
    try:
        return cls(**fields)
    except TypeError as fault:
        raise EventError(f"An event of kind {kind!r} has the wrong fields: {fault}.") from None


@lru_cache(maxsize=1024)
def _epsilon_tanh_half(epsilon: Fraction) -> Fraction:
    """Bound epsilon tanh(epsilon / 2) from above by an exact fraction."""
    ctx = _CONTEXT
    value = ctx.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    # A smaller e^-x makes tanh larger: that is the upward direction.
    decay = max(Decimal(0), ctx.subtract(ctx.exp(ctx.minus(value)), _EXP_MARGIN))
    tanh = Fraction(ctx.subtract(Decimal(1), decay)) / Fraction(ctx.add(Decimal(1), decay))
    return epsilon * min(tanh + Fraction(1, 10**45), Fraction(1), epsilon / 2)


def _require_positive(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EventError(f"{name} of an event must be an int or a float.")
    if not (math.isfinite(value) and value > 0):
        raise EventError(f"{name} of an event must be finite and above 0.")
