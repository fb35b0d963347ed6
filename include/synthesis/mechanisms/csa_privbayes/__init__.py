"""CSAPrivBayes with a guarantee, and PrivBayes: the same without regions.

Every step of the paper that looks at the data pays: the bins, where they are not declared, the
first attribute, the parents, the regions and the tables. The claim is pure differential privacy
(or zCDP with Gaussian tables).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from include.accounting import Cost, compose
from include.options import CSA_PRIVBAYES, PRIVBAYES, Option
from include.synthesis.bins import ColumnBins, SpreadModel
from include.synthesis.mechanisms.base import Policy, Synthesizer
from include.synthesis.mechanisms.csa_privbayes import budget
from include.synthesis.mechanisms.csa_privbayes.attribute import AttributeLoss, attribute_loss
from include.synthesis.mechanisms.csa_privbayes.forecast import warnings
from include.synthesis.mechanisms.csa_privbayes.policy import NetworkPolicy
from include.synthesis.mechanisms.csa_privbayes.quantiles import settled_bins
from include.synthesis.mechanisms.csa_privbayes.settings import Settings, read_settings
from include.synthesis.plan import Plan
from include.synthesis.task import SynthesisTask
from include.synthesis.transcript import NoisyMarginal, Transcript

if TYPE_CHECKING:
    from include.synthesis.model import Model


class PrivBayes(Synthesizer):
    """PrivBayes with score R under add/remove, pure DP.

    Source: Zhang, Cormode, Procopiuc, Srivastava and Xiao 2017 (PrivBayes).

    Privacy: see `Synthesizer`.
    """

    name: ClassVar[str] = "privbayes"
    option_specs: ClassVar[Mapping[str, Option]] = PRIVBAYES

    def plan(self, task: SynthesisTask, epsilon_pico: int, delta_exponent: int) -> Plan:
        """Plan structure and tables; see `Synthesizer.plan`. A pure plan costs the grant itself."""
        settings = self.settings(task)
        parts = budget.parameters(settings, epsilon_pico, delta_exponent)
        events = budget.events(settings, parts)
        return Plan(
            mechanism=self.name,
            task=task,
            epsilon_pico=epsilon_pico,
            delta_exponent=delta_exponent,
            parameters=parts,
            events=events,
            cost=compose(events),
            predictions=warnings(settings, parts, epsilon_pico),
        )

    def cost_of(self, task: SynthesisTask, delta_exponent: int) -> Callable[[int], Cost]:
        """Return the cost of `plan` as a function of epsilon; see `Synthesizer.cost_of`."""
        settings = self.settings(task)

        def cost(epsilon_pico: int) -> Cost:
            parts = budget.parameters(settings, epsilon_pico, delta_exponent)
            return compose(budget.events(settings, parts))

        return cost

    def bins(self, transcript: Transcript, plan: Plan) -> tuple[ColumnBins, ...]:
        """Tell the bins of `quantile_bins`; see `Synthesizer.bins`."""
        settings = self.settings(plan.task)
        return settled_bins(settings.bins, settings.task.domain, transcript.rounds)

    def _fitted(self, transcript: Transcript, plan: Plan, earlier: Sequence[Transcript]) -> Model:
        """Fit the network, or a graphical model with `fit: pgm`."""
        from include.synthesis.mechanisms.csa_privbayes.model import fit_network

        settings = self.settings(plan.task)
        model: Model
        if settings.pgm:
            model = self._graphical(settings.task, transcript, earlier)
        else:
            model = fit_network(settings, transcript)
        bins = self.bins(transcript, plan)
        return SpreadModel(model, plan.task.domain, bins) if bins else model

    def settings(self, task: SynthesisTask) -> Settings:
        """Check a task and its options.

        Raises:
            TaskError: One sentence that names the key and the fix.
            PlanError: A table cannot fit the memory bound.

        Privacy: ledger only.
        """
        options: dict[str, Any] = self.options(task)
        return read_settings(task, options, self.name)

    def attribute_loss(self, transcript: Transcript, plan: Plan) -> AttributeLoss | None:
        """Bound what a change of the sensitive attribute alone would have done; see `attribute`.

        Privacy: post-processing.
        """
        return attribute_loss(self.settings(plan.task), transcript, plan.cost.epsilon_pure_pico)

    def _policy(self, plan: Plan, earlier: Sequence[NoisyMarginal]) -> Policy:
        return NetworkPolicy(self.settings(plan.task), plan.parameters)


class CsaPrivBayes(PrivBayes):
    """CSAPrivBayes: the sensitive attribute first, tables weighted by region.

    Source: Chen, CSAPrivBayes, steps 1 to 14, each data-dependent one made to pay.

    Privacy: see `Synthesizer`.
    """

    name: ClassVar[str] = "csa_privbayes"
    option_specs: ClassVar[Mapping[str, Option]] = CSA_PRIVBAYES
