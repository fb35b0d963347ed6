"""Plants values in raw data that occur nowhere else, and searches everything for them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.airflow import world

WORD = "quokka-canary-7193"  # a category outside the domain
NUMBER = 918273645  # out of bounds
PERSON = "keeper-canary-5550"  # prefix of every privacy unit's id
ROWS_2020 = 8171  # rows of the partition that is released
ROWS = 3 * ROWS_2020

SECRETS = (WORD, str(NUMBER), PERSON)
# How long Airflow's web server took for an answer, in microseconds, is no count.
_COUNTS = re.compile(rf"(?<!duration_us=)(?<![\w.-])({ROWS}|{ROWS_2020})(?![\w-])")


def rows() -> list[dict[str, Any]]:
    """Return a table with a canary in every column that can hold one."""
    table = world.rows(ROWS)
    for number, row in enumerate(table):
        row["keeper_id"] = f"{PERSON}{number:06d}"
    for row in table[:60]:
        row["animal"], row["weight"] = WORD, NUMBER
    return table


def texts(files: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Return every file as text: tables decoded, all else byte by byte."""
    for path in files:
        if path.suffix == ".parquet":
            import pandas as pd

            yield path, pd.read_parquet(path).to_csv()
        else:
            yield path, path.read_bytes().decode("latin-1")


def below(*folders: Path, without: Iterable[Path] = ()) -> list[Path]:
    """Return all files below some folders, but for those below others."""
    hidden = tuple(without)
    return [
        path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(path.is_relative_to(place) for place in hidden)
    ]


def found_in(named: Iterable[tuple[Any, str]]) -> list[str]:
    """Return where a planted value shows, with a little of what stands around it."""
    return [
        f"{secret} in {name}: {text[max(0, text.index(secret) - 80) : text.index(secret) + 80]!r}"
        for name, text in named
        for secret in SECRETS
        if secret in text
    ]


def counts_in(named: Iterable[tuple[Any, str]]) -> list[str]:
    """Return where an exact row count shows."""
    return [f"{hit[0]} in {name}" for name, text in named for hit in _COUNTS.finditer(text)]


def tables(database: Path, *, only: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Return the rows of a SQLite database's tables as text."""
    connection = sqlite3.connect(database)
    try:
        names = [
            n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        for name in names:
            if only and name not in set(only):
                continue
            for row in connection.execute(f'SELECT * FROM "{name}"'):
                yield f"{database.name}:{name}", " ".join(map(str, row))
    finally:
        connection.close()


def keys_of(value: Any) -> Iterator[str]:
    """Return every key of nested JSON."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def seed_keys(files: Iterable[Path]) -> list[str]:
    """Return keys of JSON files that name a seed or a generator's state."""
    return [
        f"{key} in {path.name}"
        for path in files
        if path.suffix in (".json", ".jsonld")
        for key in keys_of(json.loads(path.read_text(encoding="utf-8")))
        if re.search(r"seed|generator_state|random_state", key, re.IGNORECASE)
    ]
