"""Reading the declared source in chunks: files, folders of files, object stores and databases.

Only the columns a dataset needs are read, under their declared names. Text formats (CSV) and
databases give text in every column: the schema alone decides what a cell means, so that one odd
cell cannot change how its neighbours are read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from include.config.datasets import DatasetConfig, SourceConfig
from include.connections import S3Parameters, SqlParameters
from include.data.errors import FormatError, SourceError, without_values
from include.data.loaders_csv import csv_names, read_csv
from include.data.loaders_parquet import parquet_names, read_parquet
from include.data.places import Place, hive_columns, local_places, s3_places

log = logging.getLogger(__name__)
_SAY_EVERY_SECONDS = 30.0


@dataclass(frozen=True)
class Reading:
    """A source opened for reading.

    Args:
        chunks: the rows in pieces, under declared names; a column that is not there is left out.
        facts: public facts of the source's form: all its column names, and whether it is typed.

    Privacy: reads raw data (chunks); facts are names and types only.
    """

    chunks: Iterator[pa.Table]
    facts: dict[str, object]


def needed_columns(dataset: DatasetConfig, partition_column: str | None = None) -> dict[str, str]:
    """Return which columns of the source are read, by declared name.

    Key columns are not read, unless they name the privacy unit.

    Args:
        dataset: the declared dataset.
        partition_column: the column a partition is selected by.

    Returns:
        Declared name to name in the source.

    Privacy: ledger only.
    """
    names = [*dataset.modelled_columns]
    for extra in (*dataset.id_columns, partition_column):
        if extra is not None and extra not in names:
            names.append(extra)
    return {name: dataset.source_name(name) for name in names}


def read_source(
    dataset: DatasetConfig,
    project_root: Path,
    *,
    partition_column: str | None = None,
    s3: S3Parameters | None = None,
    sql: SqlParameters | None = None,
) -> Reading:
    """Open a dataset's source.

    Args:
        dataset: the declared dataset.
        project_root: folder that a relative path is taken from.
        partition_column: a column to read besides, for selecting a partition.
        s3: how to reach the object store, for s3:// paths.
        sql: how to reach the database, for a query or table.

    Returns:
        The chunks and the public facts of its form.

    Raises:
        SourceError: the source is not there or cannot be read; one sentence with the fix.
        FormatError: a needed column stands in it twice.

    Privacy: reads raw data.
    """
    wanted = needed_columns(dataset, partition_column)
    source = dataset.source
    if source.path is None:
        return _read_database(dataset, wanted, sql)
    places: Sequence[Place]
    if source.path.startswith("s3://"):
        places = s3_places(source.path, s3 or S3Parameters(), str(source.file_format))
    else:
        path = project_root / source.path  # an absolute path stands for itself
        places = local_places(path, source.path, str(source.file_format))
    names = _names(places[0], source)
    _refuse_duplicates(names, wanted)
    facts = {"source_columns": names, "typed": source.file_format == "parquet"}
    chunks = _all_chunks(places, dataset, wanted)
    return Reading(_told(chunks, source.path), facts)


def _read_database(
    dataset: DatasetConfig, wanted: Mapping[str, str], sql: SqlParameters | None
) -> Reading:
    from include.data.loaders_sql import read_sql

    if sql is None:
        raise SourceError(
            f"the source of {dataset.dataset} needs the connection '{dataset.source.conn_id}'; "
            "create it in Airflow under Admin, Connections"
        )
    names, chunks = read_sql(dataset.source, sql.url, list(wanted.values()))
    _refuse_duplicates(names, wanted)
    named = (_named(table, wanted, {}) for table in chunks)
    return Reading(
        _told(named, str(dataset.source.conn_id)), {"source_columns": names, "typed": False}
    )


def _names(place: Place, source: SourceConfig) -> list[str]:
    reader = parquet_names if source.file_format == "parquet" else csv_names
    names = without_values(
        lambda: reader(place, source), SourceError, f"reading the columns of {source.path}"
    )
    return [*names, *(name for name in hive_columns(place) if name not in names)]


def _refuse_duplicates(names: list[str], wanted: Mapping[str, str]) -> None:
    for declared, name in wanted.items():
        if names.count(name) > 1:
            raise FormatError(
                declared,
                "unique",
                f"column '{declared}' stands {names.count(name)} times in the source; "
                "rename one there",
            )


def _all_chunks(
    places: Sequence[Place], dataset: DatasetConfig, wanted: Mapping[str, str]
) -> Iterator[pa.Table]:
    source = dataset.source
    for place in places:
        extra = hive_columns(place)
        own = [name for name in wanted.values() if name not in extra]
        if source.file_format == "parquet":
            tables = read_parquet(place, source, own)
        else:
            tables = read_csv(place, source, own, strict=dataset.strict)
        for table in tables:
            yield _named(table, wanted, extra)


def _named(table: pa.Table, wanted: Mapping[str, str], extra: Mapping[str, str]) -> pa.Table:
    """Give columns their declared names and order, and add those a folder's name tells."""
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for declared, name in wanted.items():
        if name in extra:
            columns[declared] = pa.array([extra[name]] * table.num_rows, pa.string())
        elif name in table.column_names:
            columns[declared] = table.column(name)
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def _told(chunks: Iterator[pa.Table], shown: str) -> Iterator[pa.Table]:
    """Pass chunks on; an error keeps its class only, and the log says that work goes on.

    The log counts seconds, not rows: the number of rows is secret.
    """
    begun = said = time.monotonic()
    while True:
        table = without_values(lambda: next(chunks, None), SourceError, f"reading {shown}")
        if table is None:
            return
        yield table
        if time.monotonic() - said > _SAY_EVERY_SECONDS:
            said = time.monotonic()
            log.info("Still reading the source, for %d s now.", said - begun)
