"""What `max_model_mb` means: a fit takes about twice the tables of the model it makes."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
import weakref

import numpy as np
import pytest

from include.synthesis import fitting
from include.synthesis.fitting import FINAL, ROUND, Fitter
from include.synthesis.transcript import NoisyMarginal

COLUMNS = [f"c{i}" for i in range(5)]
DOMAIN = dict.fromkeys(COLUMNS, 13)
"""All ten pairs make one table of 371,293 cells, 2.8 MB."""


def measured(clique: tuple[str, ...]) -> NoisyMarginal:
    cells = 13 ** len(clique)
    counts = np.random.default_rng(len(clique)).integers(0, 2000, cells)
    return NoisyMarginal(clique, 50.0, tuple(counts.tolist()), "selected")


@pytest.mark.parametrize("released", [False, True])
def test_a_fit_holds_two_tables_of_the_model_and_no_earlier_one(released: bool) -> None:
    fitter = Fitter(DOMAIN, 80, "numpy")
    pairs = list(itertools.combinations(COLUMNS, 2))
    fitter.add([*(measured((name,)) for name in COLUMNS), *map(measured, pairs)])
    bytes_of_model = fitter.sizer.size_mb * 2**20
    assert bytes_of_model > 2.5e6
    fitter.fit(ROUND)  # the next fit starts from this model
    fitter.add([measured(pairs[0])])
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        if released:
            fitter.fit_for_release()
        else:
            fitter.fit(FINAL)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert 1.9 * bytes_of_model < peak < 2.6 * bytes_of_model


def test_the_next_fit_starts_while_no_earlier_table_is_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitter = Fitter(DOMAIN, 80, "numpy")
    fitter.add([measured((name,)) for name in COLUMNS])
    earlier = weakref.ref(fitter.fit(ROUND)._conditionals)
    seen = []

    def watched(*args: object, **kwargs: object) -> object:
        gc.collect()
        seen.append(earlier() is None)
        return original(*args, **kwargs)

    original = fitting.estimate
    monkeypatch.setattr(fitting, "estimate", watched)
    fitter.add([measured(("c0", "c1"))])
    fitter.fit(ROUND)
    assert seen == [True]
