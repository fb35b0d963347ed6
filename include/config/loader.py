"""Finds and reads the steward's files. One broken file never hides the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from include.config.checks import cross_check
from include.config.datasets import DatasetConfig
from include.config.errors import ConfigError, did_you_mean, quoted
from include.config.faults import build
from include.config.requests import BudgetsConfig, ReleaseConfig
from include.config.yamlfile import read_yaml

BUDGETS_FILE = "budgets.yaml"
_ENDINGS = {".yaml", ".yml"}
_FOLDERS = {"datasets", "releases", "expectations"}


@dataclass(frozen=True)
class CheckedRelease:
    """A release with the dataset and the budgets it was checked against.

    Privacy: ledger only.
    """

    release: ReleaseConfig
    dataset: DatasetConfig
    budgets: BudgetsConfig


def list_release_files(config_dir: Path) -> list[Path]:
    """Return the release files of a configuration folder, by name.

    Privacy: ledger only.
    """
    return _yaml_files(config_dir / "releases")


def list_dataset_files(config_dir: Path) -> list[Path]:
    """Return the dataset files of a configuration folder, by name.

    Privacy: ledger only.
    """
    return _yaml_files(config_dir / "datasets")


def list_dataset_names(config_dir: Path) -> list[str]:
    """Return the names that readable dataset files declare, for the choices of a form.

    Privacy: ledger only.
    """
    names = []
    for path in list_dataset_files(config_dir):
        try:
            names.append(str(_content(path, _version(path)).get("dataset")))
        except ConfigError:
            continue
    return sorted(names)


def load_release(path: Path) -> ReleaseConfig:
    """Read one release file, by itself.

    Raises:
        ConfigError: one line "file: key: fault; fix".

    Privacy: ledger only.
    """
    label = file_label(path)
    return build(ReleaseConfig, read_yaml(path, label), label)


def load_budgets(config_dir: Path) -> BudgetsConfig:
    """Read budgets.yaml.

    Raises:
        ConfigError: one line "file: key: fault; fix".

    Privacy: ledger only.
    """
    return _budgets(config_dir / BUDGETS_FILE, _version(config_dir / BUDGETS_FILE))


def load_dataset(name: str, config_dir: Path) -> DatasetConfig:
    """Read the dataset file that declares a name.

    Args:
        name: the `dataset:` key, not the file's name.
        config_dir: folder with datasets/, releases/ and budgets.yaml.

    Raises:
        ConfigError: no file declares it, two do, or its file is at fault.

    Privacy: ledger only.
    """
    found: list[tuple[Path, dict[str, Any]]] = []
    known: list[str] = []
    broken: ConfigError | None = None
    for path in list_dataset_files(config_dir):
        try:
            content = _content(path, _version(path))
        except ConfigError as error:
            broken = broken or error
            continue
        known.append(str(content.get("dataset")))
        if content.get("dataset") == name:
            found.append((path, content))
    if len(found) > 1:
        files = " and ".join(file_label(path) for path, _ in found)
        raise ConfigError("datasets", "", f"{quoted(name)} is declared in {files}; keep one")
    if not found:
        hint = f" ({broken})" if broken else ""
        raise ConfigError(
            "datasets",
            "",
            f"no file declares the dataset {quoted(name)}; {did_you_mean(name, known)}{hint}",
        )
    path, content = found[0]
    return _dataset(path, _version(path), _own_file(content, config_dir))


def load_checked(path: Path, config_dir: Path) -> CheckedRelease:
    """Read a release file and all it refers to, and check that they fit.

    Args:
        path: the release file.
        config_dir: folder with datasets/, releases/ and budgets.yaml.

    Raises:
        ConfigError: the first fault, as one line "file: key: fault; fix".

    Privacy: ledger only.
    """
    return _checked(load_release(path), config_dir, file_label(path))


def require_one_file(path: Path, release: ReleaseConfig, config_dir: Path) -> None:
    """Refuse a release that another file of the configuration folder declares as well.

    Args:
        path: the release file; one that lies elsewhere, such as a draft, is never refused.
        release: what it declares.
        config_dir: folder with datasets/, releases/ and budgets.yaml.

    Raises:
        ConfigError: naming the other file.

    Privacy: ledger only.
    """
    files = {one.resolve(): one for one in list_release_files(config_dir)}
    if files.pop(path.resolve(), None) is None:
        return
    for other in files.values():
        try:
            name = _content(other, _version(other)).get("release")
        except ConfigError:
            continue
        if name == release.release:
            raise ConfigError(
                file_label(path),
                "release",
                f"{quoted(name)} is also declared in {file_label(other)}; rename one of them",
            )


def parse_request(form: Mapping[str, Any], config_dir: Path) -> ReleaseConfig:
    """Read a manual request with the rules of a release file.

    Args:
        form: the form's fields; empty texts and None count as not filled in.
        config_dir: folder with datasets/, releases/ and budgets.yaml.

    Returns:
        The request, checked against its dataset and the budgets.

    Raises:
        ConfigError: one line "form: field: fault; fix".

    Privacy: ledger only.
    """
    filled = {key: value for key, value in form.items() if value is not None and value != ""}
    return _checked(build(ReleaseConfig, filled, "form"), config_dir, "form").release


def _checked(release: ReleaseConfig, config_dir: Path, label: str) -> CheckedRelease:
    try:
        dataset = load_dataset(release.dataset, config_dir)
    except ConfigError as error:
        if error.file != "datasets":
            raise
        raise ConfigError(label, "dataset", error.fault) from None
    budgets = load_budgets(config_dir)
    faults = cross_check(release, dataset, budgets)
    if faults:
        key, _, rest = faults[0].partition(": ")
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise ConfigError(label, key, rest + more)
    return CheckedRelease(release, dataset, budgets)


def _yaml_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in _ENDINGS and not path.name.startswith((".", "_"))
    )


def file_label(path: Path) -> str:
    """Name a file as the steward knows it: its folder and name, never the whole path.

    Privacy: ledger only.
    """
    kept = path.parts[-2:] if path.parent.name in _FOLDERS else path.parts[-1:]
    return "/".join(kept)


def _version(path: Path) -> tuple[int, int]:
    """Return what changes when a file is edited, so that fifty releases read a dataset once."""
    try:
        stat = path.stat()
    except OSError:
        return (0, 0)
    return (stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=512)
def _content(path: Path, version: tuple[int, int]) -> dict[str, Any]:
    return read_yaml(path, file_label(path))


@lru_cache(maxsize=512)
def _dataset(
    path: Path, version: tuple[int, int], own: tuple[Path, tuple[int, int]] | None
) -> DatasetConfig:
    content = read_yaml(path, file_label(path))
    if own is not None:
        label = file_label(own[0])
        block = read_yaml(own[0], label).get("expectations")
        if not isinstance(block, list):
            raise ConfigError(label, "expectations", "missing or not a list; write one `- ` a line")
        content["expectations"] = block
    return build(DatasetConfig, content, file_label(path))


def _own_file(content: dict[str, Any], config_dir: Path) -> tuple[Path, tuple[int, int]] | None:
    """Return the steward's expectations file, where the dataset names one."""
    name = content.get("expectations")
    if not isinstance(name, str):
        return None
    path = config_dir / name
    return path, _version(path)


@lru_cache(maxsize=16)
def _budgets(path: Path, version: tuple[int, int]) -> BudgetsConfig:
    return build(BudgetsConfig, read_yaml(path, file_label(path)), file_label(path))
