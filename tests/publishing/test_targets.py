"""One suite for every destination: what publishing promises, whatever bytes are kept in."""

from __future__ import annotations

import json
import threading

import pytest

from include.publishing.errors import DestinationConflictError, PublishError
from include.publishing.folder import FolderTarget
from include.publishing.s3 import S3Target
from tests.publishing.readers import visible_releases

MARK = "WITHDRAWN.json"


class CrashError(Exception):
    """The process dies here."""


def crash_after(target, steps: int) -> list[int]:
    """Let `steps` low-level writes happen, then none: as if the process were killed."""
    done = [0]

    def step() -> None:
        if done[0] >= steps:
            raise CrashError
        done[0] += 1

    if isinstance(target, FolderTarget):
        for name in ("_copy", "_write", "_rename"):
            real = getattr(target, name)

            def stepped(*arguments, real=real):
                step()
                return real(*arguments)

            setattr(target, name, stepped)
        return done

    def before_send(request, **_):
        if request.method in ("PUT", "POST", "DELETE"):
            step()

    target.client.meta.events.register("before-send.s3", before_send)
    return done


def test_a_published_release_is_whole_and_latest(new_target, package):
    published = new_target().publish(
        package.path, package.release, package.period, package.release_id
    )
    assert published.release_id == package.release_id
    assert published.uri.endswith(f"/{package.release}/{package.period}/{package.release_id}/")
    assert (published.already_there, published.is_latest) == (False, True)
    assert list(visible_releases(new_target())) == [package.release_id]
    pointer = new_target().latest(package.release)
    assert pointer["path"] == f"{package.period}/{package.release_id}/"
    assert pointer["manifest_digest"] == f"sha256:{package.manifest_digest}"
    assert new_target().latest("another") is None


def test_publishing_again_is_a_success_and_changes_nothing(new_target, package):
    first = new_target().publish(package.path)
    before = new_target()._read(f"{package.release}/latest.json")
    second = new_target().publish(package.path)
    assert second.already_there
    assert (second.uri, second.release_id) == (first.uri, first.release_id)
    assert new_target()._read(f"{package.release}/latest.json") == before


def test_other_content_at_the_same_place_is_refused(new_target, package):
    target = new_target()
    prefix = target.publish(package.path).uri.removeprefix(target.uri.rstrip("/") + "/")
    _overwrite(target, f"{prefix}data.csv", b"forged")
    with pytest.raises(DestinationConflictError, match="exists with other content") as fault:
        new_target().publish(package.path)
    assert "data.csv" in str(fault.value)
    assert not fault.value.retry_helps
    assert target._read(f"{prefix}data.csv") == b"forged"


def test_a_foreign_object_in_the_way_is_refused(new_target, package):
    target = new_target()
    key = f"{package.release}/{package.period}/{package.release_id}/data.csv"
    _overwrite(target, key, b"someone else's")
    with pytest.raises(DestinationConflictError, match="not overwritten"):
        target.publish(package.path)
    assert target._read(key) == b"someone else's"
    assert target.latest(package.release) is None


def test_a_period_holds_one_release_unless_it_is_replaced(new_target, package, make_package):
    new_target().publish(package.path)
    other = make_package(title="Another draw", created="2026-12-01T00:00:00Z")
    with pytest.raises(DestinationConflictError, match=package.release_id):
        new_target().publish(other.path)
    assert list(visible_releases(new_target())) == [package.release_id]
    new_target().publish(other.path, supersedes=package.release_id)
    target = new_target()
    assert set(visible_releases(target)) == {package.release_id, other.release_id}
    assert target.latest(package.release)["release_id"] == other.release_id
    old = f"{package.release}/{package.period}/{package.release_id}"
    assert json.loads(target._read(f"{old}/SUPERSEDED.json"))["by"] == other.release_id
    notices = json.loads(target._read(f"{package.release}/notices.json"))["notices"]
    assert [(n["status"], n["release_id"]) for n in notices] == [("superseded", package.release_id)]
    new_target().publish(other.path, supersedes=package.release_id)
    again = json.loads(new_target()._read(f"{package.release}/notices.json"))["notices"]
    assert again == notices


def test_a_replacement_of_another_period_marks_the_old_one(new_target, package, make_package):
    new_target().publish(package.path)
    later = make_package(period="1998-12-31b", created="2026-12-02T00:00:00Z")
    new_target().publish(later.path, supersedes=package.release_id)
    old = f"{package.release}/{package.period}/{package.release_id}"
    assert new_target()._read(f"{old}/SUPERSEDED.json") is not None


def test_a_package_that_names_what_it_replaces_needs_no_argument(new_target, package, make_package):
    new_target().publish(package.path)
    other = make_package(created="2026-12-03T00:00:00Z", supersedes=package.release_id)
    assert new_target().publish(other.path).is_latest
    notices = json.loads(new_target()._read(f"{package.release}/notices.json"))["notices"]
    assert [n["by"] for n in notices] == [other.release_id]


def test_the_pointer_never_moves_back(new_target, package, make_package):
    later = make_package(period="2000-12-31", created="2026-12-05T00:00:00Z")
    new_target().publish(later.path)
    published = new_target().publish(package.path)
    assert not published.is_latest
    assert new_target().latest(package.release)["release_id"] == later.release_id
    assert set(visible_releases(new_target())) == {package.release_id, later.release_id}


def test_withdrawing_leads_no_reader_to_the_release(new_target, package):
    new_target().publish(package.path)
    for _ in range(2):
        new_target().withdraw(
            package.release,
            package.period,
            package.release_id,
            reason="The bins of one column were wrong.",
            at="2026-12-01T09:00:00Z",
        )
    target = new_target()
    pointer = target.latest(package.release)
    assert (pointer["status"], pointer["path"], pointer["manifest"]) == ("withdrawn", None, None)
    assert pointer["reason"] == "The bins of one column were wrong."
    notices = json.loads(target._read(f"{package.release}/notices.json"))["notices"]
    assert len(notices) == 1
    prefix = visible_releases(target)[package.release_id]
    assert json.loads(target._read(f"{prefix}/WITHDRAWN.json"))["status"] == "withdrawn"
    # A task that is run again after the withdrawal does not undo it.
    new_target().publish(package.path)
    assert new_target().latest(package.release)["status"] == "withdrawn"


def test_a_withdrawn_period_may_be_published_anew(new_target, package, make_package):
    new_target().publish(package.path)
    new_target().withdraw(
        package.release, package.period, package.release_id, reason="Wrong.", at="2026-12-01"
    )
    other = make_package(title="Corrected", created="2026-12-02T00:00:00Z")
    assert new_target().publish(other.path).is_latest


def test_withdrawing_what_is_not_there_says_so(new_target, package):
    with pytest.raises(PublishError, match="is not published here"):
        new_target().withdraw(package.release, package.period, "x", reason="r", at="t")


def test_a_crash_between_any_two_writes_shows_nothing_half_and_a_retry_completes(
    new_target, package, tmp_path
):
    counting = new_target()
    done = crash_after(counting, 10**6)
    counting.publish(package.path)
    total = done[0]
    assert total >= 12  # eleven files, the pointer
    _empty(new_target())
    for steps in range(total):
        target = new_target()
        crash_after(target, steps)
        with pytest.raises(CrashError):
            target.publish(package.path)
        visible_releases(new_target())
        published = new_target().publish(package.path)
        assert published.is_latest
        assert list(visible_releases(new_target())) == [package.release_id]
        _empty(new_target())


def test_a_crash_while_withdrawing_leaves_no_program_on_the_release_and_a_retry_completes(
    new_target, package
):
    said = (package.release, package.period, package.release_id)
    new_target().publish(package.path)
    folder = "/".join(said)
    for steps in range(20):
        target = new_target()
        crash_after(target, steps)
        try:
            target.withdraw(*said, reason="Wrong.", at="2026-12-01")
        except CrashError:
            target = new_target()
            told = [
                target._read(f"{package.release}/notices.json"),
                target._read(f"{folder}/{MARK}"),
            ]
            assert target.latest(package.release)["path"] is None or told == [None, None]
            new_target().withdraw(*said, reason="Wrong.", at="2026-12-01")
            finished = False
        else:
            finished = True
        target = new_target()
        assert json.loads(target._read(f"{folder}/{MARK}"))["reason"] == "Wrong."
        assert len(json.loads(target._read(f"{package.release}/notices.json"))["notices"]) == 1
        _empty(new_target())
        new_target().publish(package.path)
        if finished:
            break
    assert finished and steps > 2


def test_a_crash_while_replacing_a_release_is_mended_by_a_retry(new_target, package, make_package):
    later = make_package(title="Corrected", created="2026-12-02T00:00:00Z")
    steps, finished = 10, False  # the writes before these are those of any release
    while not finished:
        new_target().publish(package.path)
        target = new_target()
        crash_after(target, steps)
        try:
            target.publish(later.path, supersedes=package.release_id)
            finished = True
        except CrashError:
            seen = set(visible_releases(new_target()))
            assert seen <= {package.release_id, later.release_id} and package.release_id in seen
            new_target().publish(later.path, supersedes=package.release_id)
        target = new_target()
        assert target.latest(package.release)["release_id"] == later.release_id
        folder = f"{package.release}/{package.period}/{package.release_id}"
        assert json.loads(target._read(f"{folder}/SUPERSEDED.json"))["by"] == later.release_id
        assert len(json.loads(target._read(f"{package.release}/notices.json"))["notices"]) == 1
        _empty(new_target())
        steps += 1
    assert steps > 12


def test_two_publishers_at_once_end_with_one_whole_release(new_target, package):
    barrier, results, faults = threading.Barrier(4), [], []

    def run() -> None:
        target = new_target()
        barrier.wait()
        try:
            results.append(target.publish(package.path))
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert {r.release_id for r in results} == {package.release_id}
    assert list(visible_releases(new_target())) == [package.release_id]


def test_publishers_of_several_periods_leave_the_newest_as_latest(new_target, make_package):
    packages = [
        make_package(period=f"{year}-12-31", created=f"2026-12-{i + 1:02}T00:00:00Z")
        for i, year in enumerate((1994, 1996, 1998))
    ]
    faults = []

    def run(path) -> None:
        try:
            new_target().publish(path)
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(p.path,)) for p in packages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert set(visible_releases(new_target())) == {p.release_id for p in packages}
    assert new_target().latest("happiness_by_wave")["release_id"] == packages[-1].release_id


def test_a_package_of_another_release_or_a_broken_one_is_not_published(
    new_target, package, tmp_path
):
    with pytest.raises(PublishError, match="is of period '1998-12-31', not '2000-12-31'"):
        new_target().publish(package.path, period="2000-12-31")
    with pytest.raises(PublishError, match="no complete package"):
        new_target().publish(tmp_path / "nothing")
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in package.path.iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    (broken / "data.csv").write_bytes(b"changed")
    with pytest.raises(PublishError, match=r"data\.csv: the file is not what SHA256SUMS says"):
        new_target().publish(broken)
    assert visible_releases(new_target()) == {}


def _overwrite(target, key: str, data: bytes) -> None:
    if isinstance(target, S3Target):
        target.client.put_object(Bucket=target.bucket, Key=target._key(key), Body=data)
    else:
        path = target.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _empty(target) -> None:
    if isinstance(target, FolderTarget):
        import shutil

        shutil.rmtree(target.folder, ignore_errors=True)
        return
    listed = target.client.list_objects_v2(Bucket=target.bucket).get("Contents", [])
    for entry in listed:
        target.client.delete_object(Bucket=target.bucket, Key=entry["Key"])
