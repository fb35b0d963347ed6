"""A snapshot's rows as codes, some batches at a time on as many cores as there are.

Threads, not processes: Arrow and numpy work without the interpreter's lock, raw rows never leave
the process, and nothing is left behind when it is killed. Memory is that of the codes and of a few
batches. How many threads there are depends on the machine only.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from include.config.datasets import DatasetConfig
from include.data.contributions import IdHashes, bound_units, unit_hashes
from include.data.encode import CodeArray, code_dtype, encode_kept
from include.data.schema import Schema
from include.errors import CuSynError

BATCH_ROWS = 1 << 16
"""Rows decoded at a time: one row group of a snapshot."""

MOST_WORKERS = 4
"""More threads than this wait for each other."""

Batch = tuple[CodeArray, list[IdHashes]]


def decode_snapshot(
    path: Path, schema: Schema, dataset: DatasetConfig, key: bytes, workers: int | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Encode a snapshot's rows and bound each privacy unit's.

    Args:
        path: the snapshot's Parquet file.
        schema: the declared domain of the columns to model.
        dataset: the declared dataset; its id columns and row bounds are enforced here.
        key: secret of the protected store; orders a unit's rows.
        workers: threads that encode; as many as there are cores, up to MOST_WORKERS, when None.

    Returns:
        For each column its codes, shape (kept rows,), equal for any number of workers.

    Raises:
        CuSynError: the snapshot does not have the declared form.

    Privacy: reads raw data.
    """
    levels = dataset.levels
    with pq.ParquetFile(path) as file:
        _require_ids(dataset.id_columns, file.schema_arrow.names)
        total = file.metadata.num_rows
        store = np.empty((len(schema), total), dtype=code_dtype(schema))
        ids = [np.empty((total, 2), dtype=np.uint64) for _ in levels]
        wanted = [*schema.domain, *dataset.id_columns]
        filled = 0
        for codes, hashes in _in_order(
            file.iter_batches(BATCH_ROWS, columns=wanted),
            lambda batch: _encoded(batch, schema, [names for names, _ in levels], key),
            _cores() if workers is None else workers,
        ):
            end = filled + len(codes)
            store[:, filled:end] = codes.T
            for stored, found in zip(ids, hashes, strict=True):
                stored[filled:end] = found
            filled = end
    columns = [store[i, :filled] for i in range(len(schema))]
    units = [hashes[:filled] for hashes in ids]
    columns = bound_units(units, columns, [bound for _, bound in levels], key)
    return dict(zip(schema.domain, columns, strict=True))


def _encoded(
    batch: pa.RecordBatch, schema: Schema, units: Sequence[Sequence[str]], key: bytes
) -> Batch:
    """Encode one batch; rows that a policy or a missing id leaves out are gone."""
    codes, kept = encode_kept(pa.Table.from_batches([batch]), schema)
    named = [unit_hashes([batch.column(name) for name in ids], key) for ids in units]
    for _, present in named:
        kept &= present
    return codes[kept], [hashes[kept] for hashes, _ in named]


def _in_order(
    batches: Iterator[pa.RecordBatch], encode: Callable[[pa.RecordBatch], Batch], workers: int
) -> Iterator[Batch]:
    """Encode batches side by side, in their order, with no more of them held than threads and one.

    A fault, or an exception that a signal raises in the main thread, waits for the batches that
    are being encoded and drops the rest.
    """
    if workers == 1:
        yield from map(encode, batches)
        return
    waiting: deque[Future[Batch]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="decode") as pool:
        try:
            for batch in batches:
                waiting.append(pool.submit(encode, batch))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _cores() -> int:
    """Count the cores this process may use, which a container may bound."""
    allowed = getattr(os, "sched_getaffinity", None)  # not on every system
    return min(MOST_WORKERS, len(allowed(0)) if allowed else os.cpu_count() or 1)


def _require_ids(ids: Sequence[str], names: Sequence[str]) -> None:
    for name in ids:
        if name not in names:
            raise CuSynError(
                f"the id column '{name}' is not in the snapshot; rows of one unit cannot be bounded"
            )
