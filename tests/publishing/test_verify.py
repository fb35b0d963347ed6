"""A recipient's check: every way of tampering is found, with neither Airflow nor database."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from include.publishing.signing import load_signer
from include.publishing.verify import sound, verify_package

# What a recipient need not have.
WITHOUT = (
    "airflow", "sqlalchemy", "alembic", "psycopg", "pandas", "numpy", "pyarrow", "pydantic", "yaml",
    "jinja2", "opendp", "mbi", "great_expectations", "boto3", "frictionless",
)  # fmt: skip


@pytest.fixture
def copy(package, tmp_path: Path) -> Path:
    return Path(shutil.copytree(package.path, tmp_path / "package"))


def errors(path: Path, **options) -> list[str]:
    found = verify_package(path, **options)
    return [f"{f.subject}: {f.words}" for f in found if f.level == "error"]


def reseal(path: Path) -> None:
    """Forge the checksums, as someone without the key could."""
    import hashlib

    skip = ("SHA256SUMS", "SHA256SUMS.sig", "SHA256SUMS.key.pem")
    names = sorted(p.name for p in path.iterdir() if p.name not in skip)
    lines = [f"{hashlib.sha256((path / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    (path / "SHA256SUMS").write_text("".join(lines))


def test_a_sound_package_with_the_trusted_key(copy, signer):
    found = verify_package(copy, trusted_key=signer.public_pem)
    assert {f.level for f in found} == {"ok"}
    assert len(found) == 4


def test_without_a_trusted_key_the_key_id_is_to_be_compared(copy, signer):
    found = verify_package(copy)
    assert sound(found)
    assert [f.words for f in found if f.level == "warning"] == [
        f"Signed by the enclosed key {signer.key_id}; compare this id with the publisher's."
    ]


def test_every_changed_byte_is_found(copy):
    for file in sorted(copy.iterdir()):
        data = file.read_bytes()
        file.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
        assert errors(copy), file.name
        file.write_bytes(data)
    assert errors(copy) == []


def test_every_missing_file_is_found(copy):
    for file in sorted(copy.iterdir()):
        data = file.read_bytes()
        file.unlink()
        if file.name == "SHA256SUMS.sig":
            assert "The package is not signed." in [f.words for f in verify_package(copy)]
        else:
            assert errors(copy), file.name
        file.write_bytes(data)


def test_a_file_that_was_slipped_in_is_found(copy):
    (copy / "extra.csv").write_text("x")
    assert errors(copy) == ["extra.csv: The file does not belong to the package."]


def test_forged_checksums_do_not_pass_the_signature(copy, signer, tmp_path):
    text = (copy / "data.csv").read_text(encoding="utf-8")
    (copy / "data.csv").write_text(text.replace("income 0", "income 1"), encoding="utf-8")
    reseal(copy)
    found = errors(copy, trusted_key=signer.public_pem)
    assert any("The signature was not made by key" in words for words in found)
    assert any("differs from the manifest's digest" in words for words in found)
    # Signed again with a key of the forger's own: the trusted key tells, and so does the manifest.
    forger = load_signer(tmp_path / "forger")
    (copy / "SHA256SUMS.sig").write_bytes(forger.sign((copy / "SHA256SUMS").read_bytes()))
    (copy / "SHA256SUMS.key.pem").write_bytes(forger.public_pem)
    assert any("signature" in words for words in errors(copy, trusted_key=signer.public_pem))
    assert any("manifest names the key" in words for words in errors(copy))


def test_an_unsigned_package_is_no_trusted_one(copy, signer):
    (copy / "SHA256SUMS.sig").unlink()
    assert errors(copy) == []
    assert errors(copy, trusted_key=signer.public_pem) == [
        "SHA256SUMS.sig: The package is not signed."
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("income 0", "income 9", "Column 'income': a value is not declared"),
        ("educ,income", "educ,salary", "the heading is not the declared one"),
        ("\n0,", "\n99,", "Column 'educ': a value is outside the declared range"),
        ("\n0,", "\nzero,", "Column 'educ': a value is no integer"),
        ("\n0,", "\n,", "Column 'educ': a cell is empty"),
        ("\n0,", "\n0,0,", "a row has another number of cells"),
    ],
)
def test_a_table_that_breaks_its_schema_is_found(copy, old, new, words):
    text = (copy / "data.csv").read_text(encoding="utf-8")
    assert old in text
    (copy / "data.csv").write_text(text.replace(old, new, 1), encoding="utf-8")
    assert any(words in found for found in errors(copy))


def test_an_incomplete_claim_is_found(copy):
    path = copy / "datapackage.json"
    body = json.loads(path.read_text(encoding="utf-8"))
    del body["dp"]["privacy_loss"]["privacy_unit"]
    path.write_text(json.dumps(body), encoding="utf-8")
    assert any("privacy claim breaks its schema at dp/privacy_loss" in e for e in errors(copy))


@pytest.mark.parametrize(
    "line",
    ["nonsense", "ab  data.csv", f"{'0' * 64}  ../outside", f"{'0' * 64}  /etc/passwd"],
)
def test_malformed_or_escaping_checksums_are_refused(copy, line):
    with (copy / "SHA256SUMS").open("a") as file:
        file.write(line + "\n")
    assert len(errors(copy)) == 1
    assert "malformed" in errors(copy)[0]


@pytest.mark.parametrize("body", ["", "[]", "{", '{"resources": []}', '{"resources": [1, {}]}'])
def test_a_ruined_manifest_is_a_finding_not_a_traceback(copy, body):
    (copy / "datapackage.json").write_text(body)
    assert errors(copy)


def test_no_package_at_all(tmp_path):
    assert "is missing; this is no release package" in errors(tmp_path)[0]
    assert errors(tmp_path / "nowhere")


def test_a_withdrawn_package_says_so(copy):
    (copy / "WITHDRAWN.json").write_text(json.dumps({"reason": "The bins were wrong."}))
    found = verify_package(copy)
    assert sound(found)
    assert "marked this release as withdrawn. The bins were wrong." in found[-1].words


def test_it_needs_neither_airflow_nor_a_database(copy):
    """The command itself, where only `cryptography` and `jsonschema` are installed."""
    code = (
        "import sys\n"
        f"for name in {WITHOUT!r}:\n"
        "    sys.modules[name] = None\n"
        "from include.cli.__main__ import main\n"
        f"sys.exit(main(['package', 'verify', {str(copy)!r}]))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "The privacy claim is complete." in done.stdout and not done.stderr


def test_a_number_with_more_decimals_than_declared_is_found():
    from include.publishing.tables import table_schema
    from include.publishing.verify import _row_faults
    from include.quality.facts import ColumnFacts

    schema = table_schema([ColumnFacts("pay", "float", ("0 to 9",), minimum="0.0", decimals=1)])
    assert not _row_faults(iter([["pay"], ["2.0"], ["0.3"], ["8.0"]]), schema)
    faults = _row_faults(iter([["pay"], ["1.9999999999999998"]]), schema)
    assert faults == {("pay", "a value has more than 1 decimals")}
