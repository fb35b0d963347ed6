"""Counts behind a door, contribution bounds, and exact counting."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.data import marginals
from include.data.contributions import bound_units, id_hashes, kept_rows, unit_hashes
from include.data.errors import PrivateReadError
from include.data.marginals import count_many
from include.data.private import ProtectedTable
from include.data.schema import Schema
from include.errors import CuSynError
from tests.data.conftest import dataset

KEY = bytes(32)
CODES = np.array([[0, 1], [0, 1], [1, 2]], dtype=np.uint8)
DOMAIN = {"a": 2, "b": 3}


@pytest.fixture
def table() -> ProtectedTable:
    return ProtectedTable.from_codes(CODES, DOMAIN)


@pytest.mark.parametrize(
    "look",
    [
        len,
        list,
        repr,
        str,
        bool,
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        vars,
        np.asarray,
        pd.DataFrame,
        lambda t: t.shape,
        lambda t: t._VAULTS,
        lambda t: t.__dict__,
        lambda t: t[0],
        lambda t: 1 in t,
        lambda t: f"{t}",
        lambda t: t.counts(("a",)),
    ],
)
def test_every_look_is_refused_outside_a_spending_step(table: ProtectedTable, look: Any) -> None:
    with pytest.raises(PrivateReadError):
        look(table)


def test_only_counts_answer_inside_a_spending_step(table: ProtectedTable) -> None:
    with table.spending():
        assert table.counts(("a",)).tolist() == [2, 1]
        assert table.counts(("b", "a")).tolist() == [0, 0, 2, 0, 0, 1]
        assert table.counts(()).tolist() == [3]
        for look in (len, repr, list):
            with pytest.raises(PrivateReadError):
                look(table)
    with pytest.raises(PrivateReadError, match="outside a spending step"):
        table.counts(("a",))
    assert table.domain == DOMAIN and table.max_rows == 1


def test_the_door_closes_when_the_step_fails(table: ProtectedTable) -> None:
    with pytest.raises(RuntimeError), table.spending():
        raise RuntimeError
    with pytest.raises(PrivateReadError):
        table.counts(("a",))


def test_a_caller_cannot_change_later_counts(table: ProtectedTable) -> None:
    with table.spending():
        table.counts(("a",))[0] = 99
        assert table.counts(("a",)).tolist() == [2, 1]


def test_unknown_and_repeated_columns_and_too_large_tables_are_refused() -> None:
    wide = ProtectedTable.from_codes(np.zeros((1, 5), np.uint8), dict.fromkeys("abcde", 256))
    with wide.spending():
        for clique, word in [
            (("z",), "not a column"),
            (("a", "a"), "twice"),
            (tuple("abcde"), "cells"),
        ]:
            with pytest.raises(PrivateReadError, match=word):
                wide.counts(clique)


def test_a_failure_while_counting_tells_its_class_only() -> None:
    """A code outside its domain: numpy's own text and frames would show rows."""
    table = ProtectedTable.from_codes(np.array([[7, 250]], np.uint8), {"a": 2, "b": 2})
    with table.spending(), pytest.raises(PrivateReadError, match=r"failed \(\w+\)") as caught:
        table.counts(("a", "b"))
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert "250" not in "".join(traceback.format_exception(caught.value))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_counting_equals_a_plain_loop(data: st.DataObject) -> None:
    cards = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    rows = data.draw(st.integers(0, 30))
    chunk = data.draw(st.integers(1, 8))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    names = [f"c{i}" for i in range(len(cards))]
    codes = {
        n: rng.integers(0, c, rows).astype(np.uint8) for n, c in zip(names, cards, strict=True)
    }
    domain = dict(zip(names, cards, strict=True))
    cliques = [tuple(p) for r in range(5) for p in itertools.permutations(names, r)]
    cliques = data.draw(st.lists(st.sampled_from(cliques), max_size=12, unique=True))
    joint = data.draw(st.sampled_from([1, 12, 40, 1 << 14]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginals, "CHUNK_ROWS", chunk)
        patch.setattr(marginals, "JOINT_CELLS", joint)
        counted = count_many(codes, domain, cliques)
    for clique, counts in zip(cliques, counted, strict=True):
        plain = np.zeros([domain[n] for n in clique], dtype=np.int64)
        for row in range(rows):
            plain[tuple(codes[n][row] for n in clique)] += 1
        assert counts.dtype == np.int64 and np.array_equal(counts, plain.ravel())


def test_pairs_of_small_columns_are_read_off_few_tables() -> None:
    domain = dict.fromkeys("abcdefgh", 3) | {"wide": 4000}
    pairs = list(itertools.combinations(domain, 2))
    tables, home = marginals.joint_tables(domain, [*pairs, ("a",), ()])
    assert len(tables) == 1 + 8  # one of all small columns, the wide one's pairs by themselves
    for clique, place in zip([*pairs, ("a",), ()], home, strict=True):
        assert set(clique) <= set(tables[place])
    for table in tables:
        cells = math.prod(domain[name] for name in table)
        assert cells <= marginals.JOINT_CELLS or table in pairs


# ---- contributions ---------------------------------------------------------------------------


def kept(
    ids: list[Any], cells: list[int], max_rows: int, key: bytes = KEY
) -> list[tuple[Any, int]]:
    hashes, present = id_hashes(pa.array(ids), key)
    mask = kept_rows(hashes, [np.array(cells, dtype=np.uint8)], max_rows, key) & present
    return sorted((i, c) for i, c, m in zip(ids, cells, mask, strict=True) if m)


rows_of_units = st.lists(
    st.tuples(st.sampled_from("pqrs"), st.integers(0, 3)), min_size=1, max_size=25
)


@given(rows_of_units, st.integers(1, 4), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_a_units_kept_rows_depend_on_its_own_rows_only(
    rows: list[tuple[str, int]], max_rows: int, order: Any
) -> None:
    whole = kept([i for i, _ in rows], [c for _, c in rows], max_rows)
    shuffled = list(rows)
    order.shuffle(shuffled)
    assert kept([i for i, _ in shuffled], [c for _, c in shuffled], max_rows) == whole
    for unit in {i for i, _ in rows}:
        own = [c for i, c in rows if i == unit]
        alone = kept([unit] * len(own), own, max_rows)
        assert [pair for pair in whole if pair[0] == unit] == alone
        assert len(alone) == min(len(own), max_rows)
        without = [(i, c) for i, c in rows if i != unit]
        if without:
            rest = kept([i for i, _ in without], [c for _, c in without], max_rows)
            assert rest == [pair for pair in whole if pair[0] != unit]


def kept_of_units(rows: list[tuple[str, str, int]], bounds: tuple[int, ...]) -> Counter[int]:
    """Keep rows (household, person, cell) by person within household, then by household."""
    if not rows:
        return Counter()
    houses, persons = (pa.array([row[i] for row in rows]) for i in (0, 1))
    ids = [unit_hashes(named, KEY)[0] for named in ([houses, persons], [houses])]
    (cells,) = bound_units(ids, [np.array([c for *_, c in rows], dtype=np.uint8)], bounds, KEY)
    return Counter(cells.tolist())


@given(
    st.lists(
        st.tuples(st.sampled_from("HJK"), st.sampled_from("pqr"), st.integers(0, 5)), max_size=24
    ),
    st.tuples(st.integers(1, 3), st.integers(1, 5)),
    st.randoms(use_true_random=False),
)
@settings(max_examples=300, deadline=None)
def test_a_unit_within_another_moves_twice_its_rows_and_the_outer_one_its_own(
    rows: list[tuple[str, str, int]], bounds: tuple[int, int], order: Any
) -> None:
    whole = kept_of_units(rows, bounds)
    shuffled = list(rows)
    order.shuffle(shuffled)
    assert kept_of_units(shuffled, bounds) == whole
    for house in {h for h, _, _ in rows}:
        without = kept_of_units([row for row in rows if row[0] != house], bounds)
        assert without <= whole and (whole - without).total() <= bounds[1]
    for house, person in {(h, p) for h, p, _ in rows}:
        without = kept_of_units([row for row in rows if row[:2] != (house, person)], bounds)
        left, came = whole - without, without - whole
        assert max(left.total(), came.total()) <= min(bounds)


def test_a_unit_within_another_can_move_all_that_is_stated() -> None:
    """The bound is reached, so that nothing smaller would do."""
    most = 0
    for spread in itertools.product(range(6), repeat=4):
        rows = [("H", "p", c) for c in spread[:2]] + [("H", "q", c) for c in spread[2:]]
        whole = kept_of_units(rows, (2, 2))
        without = kept_of_units(rows[2:], (2, 2))
        most = max(most, (whole - without).total() + (without - whole).total())
    assert most == 4


def test_ids_of_several_columns_are_kept_apart() -> None:
    first, second = (
        pa.array(["a", "b", "ab", "", None, "a"]),
        pa.array(["b", "a", "", "ab", "a", "b"]),
    )
    hashes, present = unit_hashes([first, second], KEY)
    assert present.tolist() == [True, True, False, False, False, True]
    assert hashes[0].tolist() == hashes[5].tolist() != hashes[1].tolist()
    assert len({tuple(pair) for pair in hashes[:3].tolist()}) == 3


def test_another_key_keeps_other_rows() -> None:
    cells = list(range(200))
    assert kept(["p"] * 200, cells, 5) != kept(["p"] * 200, cells, 5, key=bytes([1]) * 32)


def write(path: Path, frame: pd.DataFrame) -> Path:
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    return path


def test_gathered_rows_count_in_bins_and_are_as_well_protected(table: ProtectedTable) -> None:
    with pytest.raises(PrivateReadError, match="outside a spending step"):
        table.gathered({"b": (0, 0, 1)})
    with table.spending():
        coarse = table.gathered({"b": (0, 0, 1)})
        with pytest.raises(PrivateReadError, match="not a column"):
            table.gathered({"z": (0,)})
        assert table.counts(("b",)).tolist() == [0, 2, 1]
    assert coarse.domain == {"a": 2, "b": 2}
    assert coarse.max_rows == table.max_rows
    for look in (len, list, repr, pickle.dumps, lambda t: t.counts(("b",))):
        with pytest.raises(PrivateReadError):
            look(coarse)
    with coarse.spending():
        assert coarse.counts(("b",)).tolist() == [2, 1]
        assert coarse.counts(("a", "b")).tolist() == [2, 0, 0, 1]


def test_gathering_costs_a_byte_a_row_and_column_and_shares_the_rest(table: ProtectedTable) -> None:
    """However fine the grid is: no table over it is ever counted for what is measured in bins."""
    from include.data.private import _VAULTS

    with table.spending():
        coarse = table.gathered({"b": (0, 0, 1)})
    whole, bins = _VAULTS[table].columns, _VAULTS[coarse].columns
    assert bins["b"].dtype == np.uint8
    assert bins["b"].nbytes == len(CODES)
    assert np.shares_memory(bins["a"], whole["a"])


def test_gathering_that_fails_tells_no_value(table: ProtectedTable) -> None:
    with table.spending(), pytest.raises(PrivateReadError) as caught:
        table.gathered({"b": (0,)})  # too short for the codes
    assert "gathering protected rows" in str(caught.value)
    assert "IndexError" in str(caught.value)
    assert "size" not in str(caught.value)


COLUMNS = {
    "a": {"type": "category", "values": ["x", "y"]},
    "n": {"type": "integer", "min": 0, "max": 9},
}


def test_a_snapshot_is_bounded_by_unit_and_rows_without_an_id_are_dropped(tmp_path: Path) -> None:
    declared = dataset(COLUMNS, privacy_unit={"what": "person", "id_column": "pid", "max_rows": 2})
    frame = pd.DataFrame(
        {
            "pid": ["p"] * 5 + ["q", None, " "],
            "a": ["x"] * 4 + ["stranger", "y", "y", "y"],
            "n": [1, 2, 3, 4, 5, 6, 7, 8],
        }
    )
    path = write(tmp_path / "s.parquet", frame)
    table = ProtectedTable.from_snapshot(path, Schema.from_config(declared), declared, KEY)
    assert table.max_rows == 2
    with table.spending():
        assert table.counts(("a",)).tolist() == [2, 1]


def test_a_snapshot_without_the_id_is_refused(tmp_path: Path) -> None:
    declared = dataset(COLUMNS, privacy_unit={"what": "person", "id_column": "pid", "max_rows": 2})
    path = write(tmp_path / "s.parquet", pd.DataFrame({"a": ["x"], "n": [1]}))
    with pytest.raises(CuSynError, match="id column 'pid' is not in the snapshot"):
        ProtectedTable.from_snapshot(path, Schema.from_config(declared), declared, KEY)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_tiny_snapshots_answer_alike(tmp_path: Path, rows: int) -> None:
    declared = dataset(COLUMNS)
    frame = pd.DataFrame({"a": ["x"] * rows, "n": pd.Series([1] * rows, dtype="int64")})
    path = write(tmp_path / "s.parquet", frame)
    table = ProtectedTable.from_snapshot(path, Schema.from_config(declared), declared, KEY)
    with table.spending():
        assert table.counts(("a", "n")).sum() == rows
        assert table.counts(("a", "n")).shape == (20,)


def test_seventy_binary_columns_and_large_categories_count_within_their_cells() -> None:
    rng = np.random.default_rng(1)
    wide = {f"b{i}": 2 for i in range(70)} | {f"c{i}": 100 for i in range(10)}
    codes = np.stack([rng.integers(0, c, 500) for c in wide.values()], axis=1).astype(np.uint8)
    table = ProtectedTable.from_codes(codes, wide)
    with table.spending():
        pairs = list(itertools.combinations(wide, 2))
        assert all(c.sum() == 500 for c in table.counts_many(pairs))
        assert table.counts(("c0", "c1", "c2")).size == 10**6


def test_neighbours_have_the_same_shapes_and_answers_of_the_same_kind(tmp_path: Path) -> None:
    """One row more, with a value seen nowhere else: only counts may tell, nothing public."""
    declared = dataset({**COLUMNS, "a": {**COLUMNS["a"], "outside": "other"}})
    base = pd.DataFrame({"a": ["x", "y"], "n": [1, 2]})
    seen = []
    for i, cell in enumerate([None, "never-seen-before"]):
        frame = base if cell is None else pd.concat([base, pd.DataFrame({"a": [cell], "n": [77]})])
        path = write(tmp_path / f"{i}.parquet", frame)
        table = ProtectedTable.from_snapshot(path, Schema.from_config(declared), declared, KEY)
        with table.spending():
            seen.append((table.domain, table.max_rows, table.counts(("a", "n")).shape))
    assert seen[0] == seen[1]
