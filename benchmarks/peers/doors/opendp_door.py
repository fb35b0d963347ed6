"""OpenDP's AIM and MST over its contingency table, told the public domain as cut points.

Keys would add a cell for nulls to every column, cuts do not. AIM's workload is all pairs (its
default is all triples), as everybody's is here. The budget is the largest rho that OpenDP's own
conversion allows for epsilon and delta. It draws as many rows as its model has in total.
"""

from __future__ import annotations

import re

import opendp.prelude as dp
import polars as pl
from door import Job, Refusal, run

ALGORITHMS = {"aim": lambda: dp.mbi.AIM(queries=2), "mst": lambda: dp.mbi.MST()}


def release(job: Job):
    """Fit and draw."""
    dp.enable_features("contrib", "idealized-numerics")
    frame = pl.DataFrame(job.rows, schema=dict.fromkeys(job.names, pl.Int64), orient="row")
    context = dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=largest_rho(job.epsilon, job.delta)),
        split_evenly_over=1,
    )
    cuts = {name: list(range(cells - 1)) for name, cells in job.cells.items()}
    query = context.query().contingency_table(cuts=cuts, algorithm=ALGORITHMS[job.mechanism]())
    try:
        table = query.release()
    except dp.OpenDPException as fault:
        refused = re.search(r'insufficient budget[^"\n]*', str(fault))
        if refused is None:
            raise
        raise Refusal(refused[0]) from fault
    return table.synthesize().select(job.names).iter_rows()


def largest_rho(epsilon: float, delta: float) -> float:
    """Invert OpenDP's conversion of zCDP to approximate DP."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def gaussian(scale: float) -> dp.Measurement:
        approximate = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale))
        return dp.c.make_fix_delta(approximate, delta=delta)

    scale = dp.binary_search_param(gaussian, d_in=1.0, d_out=(epsilon, delta))
    return dp.m.make_gaussian(*space, scale).map(1.0)


if __name__ == "__main__":
    run(release)
