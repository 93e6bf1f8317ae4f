"""A payload is seen whole or not at all."""

from datetime import UTC, datetime
from pathlib import Path

from podling.kubelet.volumes.atomic import write
from podling.kubelet.volumes.files import File

NOW = datetime(2026, 11, 21, 5, 10, 32, tzinfo=UTC)


def seen(volume: Path) -> dict[str, str]:
    names = [path for path in volume.iterdir() if not path.name.startswith("..")]
    files = [
        file for name in names for file in ([name] if name.is_file() else name.rglob("*")) if file.is_file()
    ]
    return {str(file.relative_to(volume)): file.read_text() for file in files}


def test_files_are_links_through_data_with_their_modes(tmp_path: Path) -> None:
    write(tmp_path, {"key": File(b"one", 0o640), "deep/er/key": File(b"two", 0o400)}, NOW)
    assert seen(tmp_path) == {"key": "one", "deep/er/key": "two"}
    assert str((tmp_path / "key").readlink()) == "..data/key"
    assert str((tmp_path / "deep").readlink()) == "..data/deep"
    assert str((tmp_path / "..data").readlink()).startswith("..2026_11_21_05_10_32.")
    assert (tmp_path / "key").stat().st_mode & 0o7777 == 0o640
    assert (tmp_path / "deep/er/key").stat().st_mode & 0o7777 == 0o400


def test_a_new_payload_replaces_the_old_in_one_step_and_leaves_nothing_of_it(tmp_path: Path) -> None:
    write(tmp_path, {"stays": File(b"1", 0o644), "goes": File(b"1", 0o644)}, NOW)
    before = (tmp_path / "..data").readlink()
    assert write(tmp_path, {"stays": File(b"2", 0o644), "comes": File(b"2", 0o644)}, NOW)
    assert seen(tmp_path) == {"stays": "2", "comes": "2"}
    assert not (tmp_path / before).exists()
    assert not (tmp_path / "goes").is_symlink()


def test_the_same_payload_changes_nothing(tmp_path: Path) -> None:
    payload = {"a/b": File(b"1", 0o644)}
    assert write(tmp_path, payload, NOW)
    before = (tmp_path / "..data").readlink()
    assert not write(tmp_path, payload, NOW)
    assert (tmp_path / "..data").readlink() == before


def test_a_crash_before_the_swap_leaves_the_old_files_and_the_next_write_recovers(tmp_path: Path) -> None:
    write(tmp_path, {"key": File(b"old", 0o644)}, NOW)
    (tmp_path / "..data_tmp").symlink_to("..half-written")
    assert seen(tmp_path) == {"key": "old"}
    write(tmp_path, {"key": File(b"new", 0o644)}, NOW)
    assert seen(tmp_path) == {"key": "new"}


def test_an_empty_payload_is_an_empty_volume(tmp_path: Path) -> None:
    """An optional ConfigMap that does not exist."""
    assert write(tmp_path, {}, NOW)
    assert seen(tmp_path) == {}
    assert not write(tmp_path, {}, NOW)


def test_owners_are_set_before_anyone_can_look(tmp_path: Path) -> None:
    owned: list[bool] = []
    write(
        tmp_path, {"key": File(b"1", 0o644)}, NOW, lambda fresh: owned.append((tmp_path / "..data").exists())
    )
    assert owned == [False]
