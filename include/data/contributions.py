"""Bounds on how many rows one privacy unit may own.

Which rows of a unit are kept is a function of that unit's own rows only: never of their place in
the file, of the chunk they were read in, or of other units. Otherwise removing one person could
change which rows of another are kept, and the noise would no longer cover it.

Source: Bun and Steinke 2016 for the group bound that the noise is scaled by; the rule is
truncation by a keyed hash of (id, encoded row, ordinal among equal rows).

Privacy: reads raw data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from include.data.cells import as_text

UINT64 = np.uint64
IdHashes = npt.NDArray[np.uint64]


def id_hashes(ids: pa.Array, key: bytes) -> tuple[IdHashes, npt.NDArray[np.bool_]]:
    """Return a 128-bit keyed hash of each id, and which ids are present.

    Args:
        ids: the cells of the id column, shape (rows,).
        key: secret of the protected store, 16 to 64 bytes.

    Returns:
        uint64 pairs, shape (rows, 2), and a mask that is false where the id is missing or blank.

    Privacy: reads raw data.
    """
    encoded = as_text(ids).dictionary_encode()
    values = [None if v is None else v.strip() for v in encoded.dictionary.to_pylist()]
    blank = np.array([not v for v in values] + [True])
    texts = np.array([v or "" for v in values] + [""], dtype=object)
    table = np.stack([_siphash(texts, key, half) for half in (b"unit-a", b"unit-b")], axis=1)
    indices = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return table[indices], ~blank[indices]


def unit_hashes(ids: Sequence[pa.Array], key: bytes) -> tuple[IdHashes, npt.NDArray[np.bool_]]:
    """Return a 128-bit keyed hash of each unit that several id columns name together.

    Args:
        ids: the cells of the id columns, in a fixed order, each shape (rows,).
        key: secret of the protected store, 16 to 64 bytes.

    Returns:
        uint64 pairs, shape (rows, 2), and a mask that is false where any of the ids is missing.

    Privacy: reads raw data.
    """
    hashes, present = id_hashes(ids[0], key)
    for column in ids[1:]:
        more, there = id_hashes(column, key)
        with np.errstate(over="ignore"):
            hashes = _mix(_mix(hashes) + more)
        present = present & there
    return hashes, present


def _siphash(texts: npt.NDArray[np.object_], key: bytes, purpose: bytes) -> IdHashes:
    """SipHash-2-4 of each text (Aumasson and Bernstein 2012) under a key made for one purpose."""
    made = hashlib.blake2b(purpose, digest_size=8, key=key[:64]).hexdigest()
    return np.asarray(pd.util.hash_array(texts, hash_key=made, categorize=False), dtype=UINT64)


def kept_rows(
    ids: IdHashes, codes: list[npt.NDArray[np.unsignedinteger]], max_rows: int, key: bytes
) -> npt.NDArray[np.bool_]:
    """Choose at most `max_rows` rows of each unit by a keyed hash of the unit's own rows.

    Args:
        ids: hashes of the rows' units, shape (rows, 2).
        codes: the encoded columns, each shape (rows,).
        max_rows: rows kept of one unit, at least 1.
        key: secret of the protected store.

    Returns:
        A mask of the kept rows, shape (rows,).

    Privacy: reads raw data.
    """
    large = _in_large_units(ids, max_rows)
    kept = ~large
    kept[large] = _choose(ids[large], [column[large] for column in codes], max_rows, key)
    return kept


def bound_units(
    ids: Sequence[IdHashes],
    codes: list[npt.NDArray[np.unsignedinteger]],
    bounds: Sequence[int],
    key: bytes,
) -> list[npt.NDArray[np.unsignedinteger]]:
    """Bound the rows of every kind of unit, the innermost first.

    Each unit lies within one of the next kind. So removing a unit changes its own kind's choice by
    its own kept rows only, and each later choice by no more rows that leave and as many that come.

    Args:
        ids: for each kind of unit the hashes of the rows' units, each shape (rows, 2).
        codes: the encoded columns, each shape (rows,).
        bounds: for each kind the rows kept of one unit, at least 1.
        key: secret of the protected store.

    Returns:
        The columns with the kept rows only.

    Source: docs/guarantee.md, step 1.

    Privacy: reads raw data.
    """
    units = list(ids)
    for bound in bounds:
        kept = kept_rows(units[0], codes, bound, key)
        codes = [column[kept] for column in codes]
        units = [hashes[kept] for hashes in units[1:]]
    return codes


def _in_large_units(ids: IdHashes, max_rows: int) -> npt.NDArray[np.bool_]:
    """Tell which rows belong to units with more than `max_rows` rows; the rest need no choice.

    Units are told apart by half of their hash here: two that share it only count as one large
    unit, and the choice that follows takes the whole hash.
    """
    order = np.argsort(ids[:, 0])
    sizes = _run_lengths(ids[order, 0])
    large = np.empty(len(ids), dtype=np.bool_)
    large[order] = np.repeat(sizes > max_rows, sizes)
    return large


def _run_lengths(values: IdHashes) -> npt.NDArray[np.int64]:
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return np.diff(np.append(starts, len(values)))


def _choose(
    ids: IdHashes, codes: list[npt.NDArray[np.unsignedinteger]], max_rows: int, key: bytes
) -> npt.NDArray[np.bool_]:
    if len(ids) == 0:
        return np.zeros(0, dtype=np.bool_)
    row_hash = _row_hashes(ids, codes, key)
    # Equal rows of one unit get different places in the order: number them.
    ordinal = _rank_in_group((row_hash, ids[:, 1], ids[:, 0]))
    order_hash = _mix(row_hash ^ _mix(ordinal.astype(UINT64) + UINT64(1)))
    rank = _rank_in_group((ids[:, 1], ids[:, 0]), then_by=order_hash)
    return np.asarray(rank < max_rows)


def _row_hashes(
    ids: IdHashes, codes: list[npt.NDArray[np.unsignedinteger]], key: bytes
) -> IdHashes:
    seed = hashlib.blake2b(b"rows", digest_size=8, key=key[:64]).digest()
    state = _mix(ids[:, 0] ^ np.frombuffer(seed, dtype="<u8")[0])
    state = _mix(state ^ ids[:, 1])
    for column in codes:
        state = _mix(state + column.astype(UINT64) + UINT64(0x9E3779B97F4A7C15))
    return state


def _mix(values: IdHashes) -> IdHashes:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit moves every other."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> UINT64(30))) * UINT64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> UINT64(27))) * UINT64(0x94D049BB133111EB)
        return np.asarray(values ^ (values >> UINT64(31)))


def _rank_in_group(
    group: tuple[IdHashes, ...], then_by: IdHashes | None = None
) -> npt.NDArray[np.int64]:
    """Return each row's place, from 0, among the rows of its group, ordered by `then_by`."""
    keys = group if then_by is None else (then_by, *group)
    order = np.lexsort(keys)
    same = np.ones(len(order), dtype=np.bool_)
    for column in group:
        same[1:] &= column[order[1:]] == column[order[:-1]]
    same[0] = False
    starts = np.flatnonzero(~same)
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = place
    return rank
