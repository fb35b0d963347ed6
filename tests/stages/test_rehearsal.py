"""The rehearsal on made-up rows: an error that falls with the budget, and touches no real row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.stages.budget_eval import budget_eval
from include.stages.planning import dry_run, warnings_of


def rehearsed(run, epsilon: str) -> float:
    release = run.release.model_copy(update={"epsilon": epsilon, "accept_at_least": epsilon})
    found = dry_run(replace(run, release=release), [])
    assert found.workload_error == found.to_dict()["expected_workload_error"]
    return found.workload_error


def test_more_budget_means_less_error(make_run):
    run = make_run()
    small = sum(rehearsed(run, "0.05") for _ in range(5)) / 5
    large = sum(rehearsed(run, "5") for _ in range(5)) / 5
    assert 0 < large < small / 3 < 1


def test_without_a_public_row_count_nothing_is_claimed(make_run):
    run = make_run()
    dataset = run.dataset.model_copy(update={"expected_rows": None})
    release = run.release.model_copy(update={"rows": None})
    assert dry_run(replace(run, dataset=dataset, release=release), []).workload_error is None


@pytest.mark.parametrize("mechanism", ["mwem_pgm", "aim"])
def test_planning_reads_no_source(make_run, place, mechanism):
    run = make_run()
    run = replace(
        run, release=run.release.model_copy(update={"mechanism": mechanism, "options": {}})
    )
    source = run.dataset.model_copy(
        update={"source": run.dataset.source.model_copy(update={"path": "/nowhere"})}
    )
    assert dry_run(replace(run, dataset=source), place.reader.pools()).workload_error > 0


def test_a_reservation_whose_noise_will_swamp_says_so_before_it_is_spent(make_run, place):
    run = make_run()
    release = run.release.model_copy(update={"epsilon": "0.01", "accept_at_least": "0.01"})
    charge = budget_eval(replace(run, release=release), place, None)
    assert any("ward x smoker" in warning for warning in warnings_of(run, charge))
