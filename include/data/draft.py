"""A first draft of a dataset file, from the layout of a source and nothing else.

Domains learnt from rows would tell about them: a category only one person has, a maximum only one
person reaches. So a draft holds names and storage types, and comments on what the steward fills in
from public knowledge: a codebook, a form, a law.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from include.config.base import check_column_name, column_key
from include.config.datasets import SourceConfig
from include.data.errors import SourceError, without_values
from include.data.loaders_csv import csv_names
from include.data.places import local_places
from include.data.validation import is_id_like, storage_kind

_FORMATS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".gz": "csv"}
_BOUNDS = {
    "integer": ["min:", "max:", "# bins: [...]   # the lower end of each bin, if there are many"],
    "float": ["min:", "max:", "bins:   # the lower end of each bin, or a number of equal bins"],
    "date": ["min:", "max:", "resolution: month   # day, month, quarter or year"],
    "datetime": ["min:", "max:", "resolution: day   # minute, hour, day, month, quarter or year"],
}
_HEAD = """\
# A draft. Every line that ends in nothing is for you to fill in, from public knowledge only: a
# codebook, a form, a law. Never look a value, a bound or a bin up in the rows.

dataset: {name}
populations: []       # the people (or households, firms) it is about, as named in budgets.yaml
privacy_unit:
  what: person
{unit}
source: {source}
# expected_rows:      # rows of one release, if a public figure tells them; predicts errors only
# licence, citation, publisher, contact: they go into the released package

columns:
"""
_NO_ID = """\
  # id_column:        # the column that says whose row it is, if one unit may own several rows
  max_rows:           # 1 if every row is another unit"""
_SEVERAL_IDS = """\
  id_column:          # whose row is it? {ids} look like ids; a visit's would protect visits only
  max_rows:           # at most this many rows of one unit are used; noise grows with it"""
_ID = """\
  id_column: {id}
  max_rows:           # at most this many rows of one unit are used; noise grows with it"""


def draft_schema(path: str | Path) -> str:
    """Write a draft dataset file for a local CSV or Parquet file or folder.

    Args:
        path: the file or folder. Its first line or footer is read, no row.

    Returns:
        YAML text with comments; it is not complete until the steward has filled it in.

    Raises:
        SourceError: the file is not there or its layout cannot be read.

    Privacy: post-processing (names and storage types only).
    """
    file = Path(path)
    file_format = _format_of(file)
    source = SourceConfig(path=str(path), format=file_format)  # type: ignore[arg-type]
    place = local_places(file, str(path), file_format)[0]

    def read_layout() -> list[tuple[str, str]]:
        if file_format == "csv":
            return [(name, "text") for name in csv_names(place, source)]
        with place.open() as raw:
            return [(field.name, _type_of(field.type)) for field in pq.read_schema(raw)]

    layout = without_values(read_layout, SourceError, f"reading the layout of {file.name}")
    ids = [_inline(name) for name, _ in layout if is_id_like(name)]
    head = _HEAD.format(
        name=_identifier(file.stem.split(".")[0]),
        unit=_unit(ids),
        source=_inline({"path": str(path), "format": file_format}),
    )
    return head + "\n".join(_columns(layout, typed=file_format == "parquet")) + "\n"


def _unit(ids: list[str]) -> str:
    if len(ids) > 1:
        return _SEVERAL_IDS.format(ids=", ".join(ids))
    return _ID.format(id=ids[0]) if ids else _NO_ID


def _format_of(file: Path) -> str:
    if file.is_dir():
        names = [p.suffix.lower() for p in file.rglob("*") if p.is_file()]
        return "csv" if any(n in _FORMATS for n in names) else "parquet"
    return _FORMATS.get(file.suffix.lower(), "parquet")


def _type_of(kind: pa.DataType) -> str:
    word = storage_kind(kind)
    plain = {"text": "category", "decimal": "float", "timestamp": "datetime", "empty": "category"}
    return plain.get(word, word)


def _columns(layout: list[tuple[str, str]], *, typed: bool) -> list[str]:
    lines: list[str] = []
    seen: set[str] = set()
    for place, (name, kind) in enumerate(layout, start=1):
        if name.startswith("__index_level_"):  # a row label that pandas left behind
            continue
        plain = _plain_name(name, place)
        if column_key(plain) in seen:
            lines.append(
                f"  # {_inline(name)} stands in the source more than once: rename one there"
            )
            continue
        seen.add(column_key(plain))
        lines += _column(plain, name, kind, typed=typed)
    return lines


def _plain_name(name: str, place: int) -> str:
    try:
        return check_column_name(name)
    except Exception:
        stripped = "".join(ch for ch in name if ch.isprintable()).strip()
        return stripped or f"column_{place}"


def _column(plain: str, name: str, kind: str, *, typed: bool) -> list[str]:
    lines = [f"  {_inline(plain)}:"]
    if plain != name:
        lines.append(f"    source_column: {_inline(name)}")
    if is_id_like(name):
        return [
            *lines,
            "    type: key   # never released; a fresh running number stands in its place",
        ]
    if kind == "something else":
        return [f"  # {_inline(plain)}: lists and blocks cannot be released; leave it out"]
    if not typed:
        return [
            *lines,
            "    type:         # category, boolean, integer, float, date, datetime or key",
            "    # for a category: values: [...]; for a number or date: min, max and bins",
            "    nullable:     # true if a cell may be empty",
        ]
    lines.append(f"    type: {kind}")
    if kind == "category":
        lines.append("    values: []    # all answers the codebook lists; free text: leave it out")
    lines += [f"    {line}" for line in _BOUNDS.get(kind, [])]
    return [*lines, "    nullable:     # true if a cell may be empty"]


def _identifier(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", text).strip("_.-")[:80]
    return name if name[:1].isalpha() else f"d_{name}".rstrip("_")


def _inline(value: object) -> str:
    """Write a value as YAML on one line."""
    text: str = yaml.safe_dump(
        value, allow_unicode=True, default_flow_style=True, width=10_000, sort_keys=False
    )
    return text.removesuffix("...\n").strip()
