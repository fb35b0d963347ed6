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
from include.data.contributions import IdHashes, id_hashes, kept_rows
from include.data.encode import CodeArray, code_dtype, encode_kept
from include.data.schema import Schema
from include.errors import CuSynError

BATCH_ROWS = 1 << 16
"""Rows decoded at a time: one row group of a snapshot."""

MOST_WORKERS = 4
"""More threads than this wait for each other."""

Batch = tuple[CodeArray, IdHashes | None]


def decode_snapshot(
    path: Path, schema: Schema, dataset: DatasetConfig, key: bytes, workers: int | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Encode a snapshot's rows and bound each privacy unit's.

    Args:
        path: the snapshot's Parquet file.
        schema: the declared domain of the columns to model.
        dataset: the declared dataset; its id column and row bound are enforced here.
        key: secret of the protected store; orders a unit's rows.
        workers: threads that encode; as many as there are cores, up to MOST_WORKERS, when None.

    Returns:
        For each column its codes, shape (kept rows,), equal for any number of workers.

    Raises:
        CuSynError: the snapshot does not have the declared form.

    Privacy: reads raw data.
    """
    unit = dataset.id_column
    with pq.ParquetFile(path) as file:
        _require_id(unit, file.schema_arrow.names)
        total = file.metadata.num_rows
        store = np.empty((len(schema), total), dtype=code_dtype(schema))
        ids = np.empty((total if unit else 0, 2), dtype=np.uint64)
        wanted = [*schema.domain, *([unit] if unit else [])]
        filled = 0
        for codes, hashes in _in_order(
            file.iter_batches(BATCH_ROWS, columns=wanted),
            lambda batch: _encoded(batch, schema, unit, key),
            _cores() if workers is None else workers,
        ):
            end = filled + len(codes)
            store[:, filled:end] = codes.T
            if hashes is not None:
                ids[filled:end] = hashes
            filled = end
    columns = [store[i, :filled] for i in range(len(schema))]
    if unit:
        chosen = kept_rows(ids[:filled], columns, dataset.row_bound, key)
        columns = [column[chosen] for column in columns]
    return dict(zip(schema.domain, columns, strict=True))


def _encoded(batch: pa.RecordBatch, schema: Schema, unit: str | None, key: bytes) -> Batch:
    """Encode one batch; rows that a policy or a missing id leaves out are gone."""
    codes, kept = encode_kept(pa.Table.from_batches([batch]), schema)
    if unit is None:
        return codes[kept], None
    hashes, present = id_hashes(batch.column(unit), key)
    kept &= present
    return codes[kept], hashes[kept]


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


def _require_id(unit: str | None, names: Sequence[str]) -> None:
    if unit is not None and unit not in names:
        raise CuSynError(
            f"the id column '{unit}' is not in the snapshot; rows of one unit cannot be bounded"
        )
