"""Folders, keys, snapshots and transcripts that are not there: one sentence, nothing spent."""

from __future__ import annotations

import shutil

import pytest

from include.errors import CuSynError
from include.folders import FolderError, make_folder
from include.publishing.signing import PRIVATE_NAME, PUBLIC_FOLDER, KeyFileError, rotate
from include.stages.budget_eval import budget_eval
from include.stages.load import load
from include.stages.quality_check import quality_check
from include.stages.store import KEY_FILE, SnapshotLost
from include.stages.synthesize import synthesize
from include.stages.validate import validate
from tests.stages.test_stages import opened, release


def reserved(run, place):
    """Bring a run to its reservation."""
    return budget_eval(run, place, load(run, place))


@pytest.mark.parametrize("name", ["protected_dir", "keys_dir", "work_dir", "checkpoints_dir"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_folder_that_is_a_file_is_named_and_nothing_is_spent(place, make_run, name, inside):
    folder = getattr(place.settings, name)
    if inside:  # a folder above it is the file
        object.__setattr__(place.settings, name, folder / "deeper")
    folder.write_text("a file")
    with pytest.raises(CuSynError, match=f"{folder} is not a folder.*name another folder"):
        reserved(make_run(), place)
        synthesize(make_run(), place)
    assert {pool.spent_pico for pool in place.reader.pools()} == {0}


def test_the_embedded_default_ends_in_one_sentence_where_var_is_a_file(tmp_path):
    from tools.embedded import enter

    (tmp_path / "var").write_text("a file")
    with pytest.raises(SystemExit, match="var is not a folder"):
        enter(tmp_path / "var")


def test_a_folder_that_may_not_be_made_says_who_must_give_access(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(FolderError, match="write access to the folder above it"):
        make_folder(tmp_path / "work")


def test_a_link_that_leads_nowhere_is_not_followed(tmp_path):
    (tmp_path / "work").symlink_to(tmp_path / "unmounted")
    with pytest.raises(FolderError, match="work is not a folder"):
        make_folder(tmp_path / "work")


def test_a_lost_signing_key_is_not_replaced_and_stops_before_anything_is_spent(place, make_run):
    release(make_run(), place)
    key = place.settings.keys_dir / PRIVATE_NAME
    key.unlink()
    later = make_run(run_id="run-2", period="2002-12-31")
    reserved(later, place)
    spent = [pool.spent_pico for pool in place.reader.pools()]
    with pytest.raises(KeyFileError, match=f"{key}: the signing key is missing.*backup"):
        synthesize(later, place)
    assert [pool.spent_pico for pool in place.reader.pools()] == spent
    rotate(place.settings.keys_dir)
    assert synthesize(later, place).charge_id


def test_a_lost_folder_of_keys_is_noticed_by_the_checkpoints(place, make_run):
    release(make_run(), place)
    kept = place.settings.keys_dir / KEY_FILE
    key = kept.read_bytes()
    shutil.rmtree(place.settings.keys_dir)
    place.settings.keys_dir.mkdir(mode=0o700)
    kept.touch(0o600)
    kept.write_bytes(key)
    later = make_run(run_id="run-2", period="2002-12-31")
    reserved(later, place)
    with pytest.raises(KeyFileError, match="the signing key is missing"):
        synthesize(later, place)
    assert not (place.settings.keys_dir / PUBLIC_FOLDER).exists()


def test_a_lost_snapshot_key_is_not_replaced(place, make_run):
    run = make_run()
    snapshot_id = load(run, place)
    key = place.settings.keys_dir / KEY_FILE
    kept = key.read_bytes()
    key.unlink()
    for step in (lambda: validate(run, place, snapshot_id), lambda: load(run, place)):
        with pytest.raises(CuSynError, match=f"{key}: the snapshot key is missing.*backup"):
            step()
        assert not key.exists()
    key.touch(0o600)
    key.write_bytes(kept)
    assert validate(run, place, snapshot_id)


def test_a_deleted_snapshot_of_a_reservation_says_how_to_give_it_back(place, make_run):
    run = make_run()
    charge = reserved(run, place)
    shutil.rmtree(place.settings.protected_dir / "snapshots")
    assert load(run, place) == charge.snapshot_id  # again brings no other
    for step in (lambda: validate(run, place, charge.snapshot_id), lambda: synthesize(run, place)):
        with pytest.raises(SnapshotLost, match=f"admin void {charge.charge_id}") as told:
            step()
        assert "run load again" not in str(told.value)
    assert place.reader.charge(charge.charge_id).state == "reserved"


def test_content_whose_snapshot_is_lost_can_be_released_under_a_new_key(place, make_run):
    charge = reserved(make_run(), place)
    shutil.rmtree(place.settings.protected_dir / "snapshots")
    place.ledger.void(charge.charge_id, "the snapshot is gone")
    later = make_run(run_id="run-2")
    for _ in range(2):
        with pytest.raises(SnapshotLost, match=f"{charge.snapshot_id}.*replace the snapshot key"):
            load(later, place)
    (place.settings.keys_dir / KEY_FILE).write_bytes(bytes(range(32)))
    assert release(later, place)[1].release_id


def test_a_deleted_snapshot_of_an_opened_charge_says_what_giving_up_costs(place, make_run):
    charge = opened(place, make_run)
    shutil.rmtree(place.settings.protected_dir / "snapshots")
    with pytest.raises(SnapshotLost, match=f"admin forfeit {charge.charge_id}.*stays spent"):
        synthesize(make_run(attempt=2), place)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda file: file.unlink(), "is missing"),
        (lambda file: file.write_bytes(b"{}"), "is damaged or cannot be read"),
        (lambda file: file.write_bytes(file.read_bytes()[:-9]), "is damaged or cannot be read"),
    ],
)
def test_a_sealed_transcript_that_cannot_be_read_names_charge_and_file(place, make_run, harm, said):
    run = make_run()
    charge = reserved(run, place)
    synthesize(run, place)
    [file] = (place.settings.work_dir / charge.charge_id).glob("transcript-*.json")
    harm(file)
    with pytest.raises(CuSynError, match=f"{charge.charge_id}.*{file.name} {said}; restore that"):
        quality_check(run, place)
