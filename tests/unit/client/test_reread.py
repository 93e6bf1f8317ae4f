"""Files that are replaced while what was made of them is in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.process.tls import Reread


def made_of(file: Path) -> Reread[int]:
    return Reread([file], lambda: int(file.read_text()))


def replace(file: Path, text: str) -> None:
    partial = file.with_name("new")
    partial.write_text(text)
    partial.replace(file)


def test_what_was_replaced_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "number"
    file.write_text("1")
    made = made_of(file)
    assert made.get() == 1
    replace(file, "2")
    assert made.get() == 2


def test_a_link_that_points_elsewhere_is_followed(tmp_path: Path) -> None:
    """So do the volumes of pods change, and so does Kubernetes' kubelet renew its certificate."""
    for number in ("1", "2"):
        (tmp_path / number).write_text(number)
    link = tmp_path / "current"
    link.symlink_to("1")
    made = made_of(link)
    link.unlink()
    link.symlink_to("2")
    assert made.get() == 2


@pytest.mark.parametrize("bad", ["", "half"])
def test_the_old_stays_in_use_until_there_is_a_good_one(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "number"
    file.write_text("1")
    made = made_of(file)
    replace(file, bad)
    assert made.get() == 1
    file.unlink()
    assert made.get() == 1
    replace(file, "3")
    assert made.get() == 3


def test_what_is_bad_at_first_is_told(tmp_path: Path) -> None:
    file = tmp_path / "number"
    with pytest.raises(FileNotFoundError):
        made_of(file)
    file.write_text("half")
    with pytest.raises(ValueError, match="half"):
        made_of(file)
