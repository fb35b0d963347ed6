"""YAML read strictly, so that what the steward sees is what is meant.

Plain YAML 1.1 turns `no` into False, `010` into 8, `12:30` into 750 and a date into an object, and
lets a key silently win over its twin. Here only true/false are truth values, only plain decimals
are numbers, dates stay text, and a key written twice is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from include.config.errors import ConfigError, one_line

_MAX_BYTES = 5_000_000
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _StrictLoader(_Base):  # type: ignore[misc]
    """Resolves fewer plain words than YAML 1.1 does, and refuses keys written twice."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012  (the parent's protocol)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping after checking that no key stands in it twice."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key is itself a list or a block", key_node.start_mark
                )
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"the key '{one_line(key_node.value)}' is written twice",
                    key_node.start_mark,
                )
            seen.add(key_node.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _resolve(tag: str, pattern: str, first: str) -> None:
    _StrictLoader.add_implicit_resolver(tag, re.compile(pattern), list(first))


_resolve("tag:yaml.org,2002:bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF")
_resolve("tag:yaml.org,2002:int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789")
_resolve(
    "tag:yaml.org,2002:float",
    r"^(?:[-+]?[0-9]*\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
    "-+0123456789.",
)
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
_StrictLoader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"^(?:<<)$"), ["<"])


def read_yaml(path: Path, label: str) -> dict[str, Any]:
    """Read one YAML file that holds a block of keys.

    Args:
        path: the file.
        label: how the file is called in an error.

    Returns:
        Its content as plain dictionaries, lists, texts, ints, floats and truth values.

    Raises:
        ConfigError: the file is missing, unreadable, not YAML, or not a block of keys.

    Privacy: ledger only.
    """
    return parse_yaml(_read(path, label), label)


def parse_yaml(text: str, label: str) -> dict[str, Any]:
    """Read YAML text that holds a block of keys.

    Raises:
        ConfigError: the text is not YAML or not a block of keys; the line is named.

    Privacy: ledger only.
    """
    try:
        content = yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(label, _line(error), _yaml_fault(error)) from None
    except (yaml.YAMLError, ValueError, TypeError):
        raise ConfigError(label, "", "not readable as YAML; check for stray characters") from None
    except RecursionError:
        raise ConfigError(label, "", "nested too deeply; flatten the file") from None
    if content is None:
        raise ConfigError(label, "", "the file is empty; write its keys or remove it")
    if not isinstance(content, dict):
        raise ConfigError(label, "line 1", "expected `key: value` lines at the top; add the keys")
    return content


def _read(path: Path, label: str) -> str:
    try:
        if path.exists() and not path.is_file():  # opening a named pipe would wait for ever
            raise OSError
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(label, "", f"the file does not exist; create {path.name}") from None
    except OSError:
        raise ConfigError(label, "", "cannot be read; check that it is a readable file") from None
    if len(raw) > _MAX_BYTES:
        raise ConfigError(label, "", "larger than 5 MB; a configuration file holds no data")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(label, "", "not UTF-8 text; save it in UTF-8") from None


def _line(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f"line {mark.line + 1}" if mark else ""


def _yaml_fault(error: yaml.MarkedYAMLError) -> str:
    problem = one_line(error.problem or "broken YAML")
    if "written twice" in problem:
        return f"{problem}; remove one of the two"
    if "\\t" in problem or "tab" in problem:
        return "a tab is used for indentation; use spaces"
    return f"broken YAML ({problem}); check indentation, colons, brackets and quotes there"
