"""A backup and the way back: all of it or nothing, whatever happens meanwhile."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import sys
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import pytest

from podling.assemble.backup import MANIFEST, back_up
from podling.assemble.restore import accept_loss, restore
from podling.machine import instance as instances
from podling.machine.instance import LAYOUT_VERSION, Choices, Instance
from podling.machine.pki import Authority
from podling.machine.start import DamagedError, StartError, hold
from podling.storage.interface import Event
from podling.storage.sqlite.backup import LEAP, look
from podling.storage.sqlite.log import Log
from podling.storage.sqlite.whole import DamagedFileError

NOW = datetime.now(UTC)


def _make(directory: Path, objects: int) -> Instance:
    """A data directory with so many objects."""
    made = Instance.at(directory)
    made.have_data_dir()
    Authority(made.pki_dir, NOW).signing_key("service-accounts")
    made.keep(Choices(LAYOUT_VERSION, 7000 + objects, "10.64.1.0/24"))
    log = Log(made.database)
    log.append([Event(n, f"/registry/pods/default/{n}", b"{}", None) for n in range(1, objects + 1)])
    log.close()
    return made


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Instance:
    monkeypatch.setattr(instances, "RUN_ROOT", tmp_path / "run")
    return _make(tmp_path / "here", 3)


@pytest.fixture
def backup(here: Instance, tmp_path: Path) -> Path:
    back_up(here, tmp_path / "backup.tar")
    return tmp_path / "backup.tar"


def _content(found: Instance) -> tuple[int, dict[str, bytes]]:
    """The number of objects, and all else that a backup has."""
    kept = [found.choices_file, *found.pki_dir.iterdir()]
    return look(found.database).objects, {
        str(path.relative_to(found.data_dir)): path.read_bytes() for path in kept
    }


def _modes(directory: Path) -> dict[str, int]:
    return {str(p.relative_to(directory)): p.stat().st_mode & 0o777 for p in directory.rglob("*")}


def test_it_is_one_file_for_its_owner_alone(here: Instance, backup: Path) -> None:
    assert backup.stat().st_mode & 0o777 == 0o600
    with tarfile.open(backup) as archive:
        assert archive.getnames() == [
            MANIFEST,
            "state.db",
            "instance.json",
            *sorted(f"pki/{path.name}" for path in here.pki_dir.iterdir()),
        ]
    assert [path.name for path in backup.parent.iterdir() if path.name not in ("here", "run")] == [
        backup.name
    ]


def test_elsewhere_all_of_it_is_there(here: Instance, backup: Path, tmp_path: Path) -> None:
    there = Instance.at(tmp_path / "there")
    restored = restore(there, backup, force=False)
    assert (restored.objects, restored.revision) == (3, 3 + LEAP)
    assert _content(there) == _content(here)
    with hold(there):
        Log(there.database).close()


def test_what_is_there_is_kept_unless_it_is_given_up(backup: Path, tmp_path: Path) -> None:
    there = _make(tmp_path / "there", 5)
    before = _content(there)
    with pytest.raises(StartError, match="holds objects and keys already: they are lost when --force"):
        restore(there, backup, force=False)
    assert _content(there) == before
    restore(there, backup, force=True)
    left = {path.name for path in there.data_dir.iterdir()}
    assert left == {"instance.json", "pki", "state.db", "state.db.lock", "state.db.newest"}
    assert look(there.database).objects == 3


def test_keys_are_for_their_owner_when_they_are_back(backup: Path, tmp_path: Path) -> None:
    there = Instance.at(tmp_path / "there")
    restore(there, backup, force=False)
    modes = _modes(there.data_dir)
    public = {name for name, mode in modes.items() if mode & 0o077}
    assert public == {"pki/ca.crt", "pki/service-accounts.pub"}


def test_a_podling_that_runs_is_left_alone(here: Instance, backup: Path) -> None:
    with hold(here), pytest.raises(StartError, match="podling is already running"):
        restore(here, backup, force=True)


def test_where_no_podling_was_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="holds no objects of a podling"):
        back_up(Instance.at(tmp_path / "nowhere"), tmp_path / "backup.tar")
    assert not list(tmp_path.iterdir())


def test_nor_where_a_backup_could_not_be(here: Instance, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"there is no directory .*/nowhere"):
        back_up(here, tmp_path / "nowhere" / "backup.tar")


def test_a_damaged_podling_leaves_the_last_backup_alone(here: Instance, backup: Path) -> None:
    before = backup.read_bytes()
    here.database.write_bytes(here.database.read_bytes()[:-4096])
    with pytest.raises(DamagedError):
        back_up(here, backup)
    assert backup.read_bytes() == before
    assert sorted(path.name for path in backup.parent.iterdir()) == ["backup.tar", "here"]


def test_lost_writes_can_be_given_up(here: Instance) -> None:
    """A write-ahead log that is gone, and the note of how far the file had come."""
    before = _content(here)
    newest = here.database.with_name("state.db.newest")
    log = Log(here.database)
    log._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old = here.database.read_bytes()
    log.append([Event(4, "/registry/pods/default/4", b"{}", None)])
    noted = newest.read_bytes()
    log.close()
    here.database.write_bytes(old)
    newest.write_bytes(noted)
    with pytest.raises(DamagedFileError, match="podling restore --accept-loss"):
        Log(here.database)
    given_up = accept_loss(here)
    assert (given_up.objects, given_up.revision) == (3, 4 + LEAP)
    assert _content(here) == before
    newest.unlink()
    with pytest.raises(DamagedFileError, match="podling restore --accept-loss"):
        Log(here.database)
    assert accept_loss(here).revision == 4 + 2 * LEAP


def test_what_was_changed_cannot_be_gone_on_from(here: Instance) -> None:
    here.database.write_bytes(here.database.read_bytes().replace(b"default/2", b"default/9"))
    before = here.database.read_bytes()
    with pytest.raises(DamagedError, match="revision 2 was changed"):
        accept_loss(here)
    assert here.database.read_bytes() == before


def test_where_nothing_is_nothing_can_be_gone_on_from(here: Instance) -> None:
    here.database.unlink()
    with pytest.raises(StartError, match="holds no objects to go on from"):
        accept_loss(here)


def test_a_backup_that_was_damaged_is_refused_before_anything_is_touched(
    backup: Path, tmp_path: Path
) -> None:
    there, whole = _make(tmp_path / "there", 5), backup.read_bytes()
    before, choices = _content(there), random.Random(0)
    # Somewhere in what it holds: tar fills up with nothing.
    held = [at for at, byte in enumerate(whole) if byte]
    for turn in range(60):
        content = bytearray(whole)
        if turn % 3:
            content[choices.choice(held)] ^= 1 << choices.randrange(8)
        else:
            del content[choices.randrange(len(content) - 10_240) :]
        backup.write_bytes(content)
        try:
            restore(there, backup, force=True)
        except DamagedError as refusal:
            assert str(refusal).startswith(f"{backup} is not a whole backup: ")
            assert _content(there) == before
        else:
            assert look(there.database).objects == 3, "what was changed says nothing"
            shutil.rmtree(there.data_dir)
            there = _make(tmp_path / "there", 5)
            before = _content(there)
        assert not (there.data_dir / "restoring").exists()


@pytest.mark.parametrize("name", ["../state.db", "/etc/passwd", "pki/../../x", "pki/sub/x", "kubelet/x"])
def test_nothing_is_written_elsewhere(name: str, backup: Path, tmp_path: Path) -> None:
    with tarfile.open(backup) as archive:
        described = json.load(archive.extractfile(MANIFEST) or io.BytesIO())
    described["files"][name] = described["files"]["instance.json"]
    text = json.dumps(described).encode()
    forged = tmp_path / "forged.tar"
    with tarfile.open(backup) as old, tarfile.open(forged, "w") as new:
        for member in old:
            data = text if member.name == MANIFEST else (old.extractfile(member) or io.BytesIO()).read()
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    with pytest.raises(DamagedError, match="is nothing that backups have"):
        restore(Instance.at(tmp_path / "there"), forged, force=False)


CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "shutil.rmtree")


def _killed_at(change: int, action: Callable[[], object]) -> bool:
    """Whether it came to so many changes of the file system before it was done, and was killed."""

    def act() -> None:
        left = change

        def count(event: str, arguments: object) -> None:
            nonlocal left
            if event in CHANGES:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        action()

    process = get_context("fork").Process(target=act)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def test_a_kill_leaves_the_old_or_the_new(here: Instance, backup: Path, tmp_path: Path) -> None:
    old, there = _make(tmp_path / "old", 5), Instance.at(tmp_path / "there")
    outcomes: list[int] = []
    while True:
        shutil.rmtree(there.data_dir, ignore_errors=True)
        shutil.copytree(old.data_dir, there.data_dir)
        if not _killed_at(len(outcomes) + 1, lambda: restore(there, backup, force=True)):
            break
        with hold(there):
            assert not there.restoring_dir.exists() and not there.restored_dir.exists()
            Log(there.database).close()
            found = _content(there)
            assert found in (_content(old), _content(here))
            outcomes.append(found[0])
    assert outcomes == sorted(outcomes, reverse=True), "from some moment on it is the new"
    assert set(outcomes) == {3, 5}
    assert outcomes.count(3) > 5


def test_a_restore_that_was_cut_short_can_be_cut_short_again(
    here: Instance, backup: Path, tmp_path: Path
) -> None:
    there = _make(tmp_path / "there", 5)

    def kill_after_the_rename() -> bool:
        return any(
            _killed_at(change, lambda: restore(there, backup, force=True)) and there.restored_dir.exists()
            for change in range(1, 40)
        )

    assert kill_after_the_rename()
    with pytest.raises(StartError, match="was cut short: the next start finishes it"):
        back_up(there, tmp_path / "other.tar")
    for _ in range(3):
        _killed_at(3, lambda: hold(there))
    with hold(there):
        assert _content(there) == _content(here)
