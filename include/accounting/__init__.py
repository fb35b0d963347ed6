"""Privacy accounting in exact arithmetic: amounts, events, composition, conversion.

The bottom of the house: it imports nothing of the rest, and an auditor can read it alone.
"""

from include.accounting.accountant import Accounting, Cost, compose, cost_in_currency
from include.accounting.amounts import (
    ONE,
    AmountError,
    format_amount,
    format_delta,
    parse_amount,
    parse_delta,
)
from include.accounting.events import (
    AdaptiveBlock,
    DiscreteLaplace,
    Event,
    EventError,
    ExponentialMechanism,
    Gaussian,
    event_from_dict,
)
from include.accounting.zcdp import epsilon_from_rho, rho_from_epsilon

__all__ = [
    "ONE",
    "Accounting",
    "AdaptiveBlock",
    "AmountError",
    "Cost",
    "DiscreteLaplace",
    "Event",
    "EventError",
    "ExponentialMechanism",
    "Gaussian",
    "compose",
    "cost_in_currency",
    "epsilon_from_rho",
    "event_from_dict",
    "format_amount",
    "format_delta",
    "parse_amount",
    "parse_delta",
    "rho_from_epsilon",
]
