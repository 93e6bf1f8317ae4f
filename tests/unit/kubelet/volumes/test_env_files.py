"""What files say of variables: as Kubernetes reads them, and nothing a shell would not read from them. The
files of a volume are found as by one who has the volume for its root."""

from __future__ import annotations

import io
import logging
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.cri_config.environment import FileKey, FoundInFile
from podling.kubelet.volumes.env_files import (
    LONGEST_LINE,
    LONGEST_VALUE,
    EnvFileError,
    lines_of,
    read_env_files,
    value_in,
)
from podling.kubelet.volumes.set_up import MountedVolume

AT = "invalid environment variable format at line"
LINE = "1234567\n"


def parsed(text: str | bytes, key: str = "K") -> str:
    return value_in(lines_of(io.BytesIO(text.encode() if isinstance(text, str) else text)), key)


VALUES = [
    ("K='v'", "v"),
    ("K='v'\n", "v"),
    ("K='v'\r\n", "v"),
    ("A='a'\nK='v'\nB='b'\n", "v"),
    ("\t  K='v'", "v"),
    ("\n \t\n# K='no'\n  # more\nK='v'", "v"),
    ("K=' a  b '", " a  b "),
    ("K='a#b=c\"d\\\\$HOME$(A)`x`'", 'a#b=c"d\\\\$HOME$(A)`x`'),
    ("K='v' # why", "v"),
    ("K='v'#why", "v"),
    ("K='v'   ", "v"),
    ("K='one\n\n  # two\nthree' # why\nA='a'", "one\n\n  # two\nthree"),
    ("A='K=\nK='\nK='v'", "v"),
    ("K='first'\nK='last'", "first"),
    ("K=''", ""),
    ("K= 'v'", ""),
    ("K= \nA='a'", ""),
    ("A= K='no'\nK='v'", "v"),
    ("k='v'", ""),
    ("export K='v'", ""),
    ("", ""),
    ("K='v'\nafter this nothing is looked at", "v"),
    ("K='\xe9'", "\xe9"),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text: str, value: str) -> None:
    """R-INIT-12"""
    assert parsed(text) == value


def test_a_key_may_be_any_name_of_a_variable() -> None:
    assert parsed("a b.c-d'e='v'", "a b.c-d'e") == "v"


def test_what_is_no_text_is_replaced() -> None:
    assert parsed(b"K='\xff'") == "\ufffd"


FAULTS = [
    ("A='a'\nK", f"{AT} 2: missing '='"),
    ("A='a'\n ='v'", f"{AT} 2: empty variable name"),
    (" \t ='v'", f"{AT} 1: empty variable name"),
    ("K ='v'", f"{AT} 1: whitespace before '=' is not allowed"),
    ("K=v", f"{AT} 1: value must be enclosed in single quotes"),
    ('K="v"', f"{AT} 1: value must be enclosed in single quotes"),
    ("K=", f"{AT} 1: value must be enclosed in single quotes"),
    ("# \nK='v'w", f"{AT} 2: unexpected content after closing quote"),
    ("K='v\n' 'w'", f"{AT} 2: unexpected content after closing quote"),
    ("A='a'b\nK='v'", f"{AT} 1: unexpected content after closing quote"),
    ("\nA='v\n\n", "invalid environment variable format starting at line 2: unclosed single quote"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_what_is_wrong_is_said_with_its_line(text: str, message: str) -> None:
    with pytest.raises(EnvFileError) as fault:
        parsed(text)
    assert str(fault.value) == message


@pytest.mark.parametrize("end", ["", "\n", "\nA='a'\n"])
def test_a_line_has_a_longest_length(end: str) -> None:
    longest = f"K='{'v' * (LONGEST_LINE - 4)}'"
    assert len(parsed(longest + end)) == LONGEST_LINE - 4
    with pytest.raises(EnvFileError, match="a line is longer than 65535 bytes"):
        parsed(f"#{longest}{end}")


def test_a_value_no_program_could_have_is_not_held() -> None:
    lines = LINE * (LONGEST_VALUE // len(LINE))
    assert parsed(f"K='{lines}'") == lines
    assert parsed(f"A='{lines}{LINE}'\nK='v'") == "v"
    with pytest.raises(EnvFileError, match="value is longer than"):
        parsed(f"K='{lines}{LINE}'")


TEXT = st.text(st.characters(exclude_characters="\0\r'", exclude_categories=["Cs"]))
NAMES = st.from_regex("[A-Z_][A-Z0-9_]{0,5}", fullmatch=True)


@given(st.dictionaries(NAMES, TEXT, min_size=1))
def test_what_is_written_is_parsed(variables: dict[str, str]) -> None:
    text = "".join(f"# {name}\n{name}='{value}'\n\n" for name, value in variables.items())
    assert {name: parsed(text, name) for name in variables} == variables


@given(value=TEXT)
def test_a_shell_reads_the_same(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    file: Path = tmp_path_factory.mktemp("env") / "file"
    file.write_bytes(f"A='a'\n K_1='{value}' # why\n".encode())
    said = subprocess.run(["sh", "-c", f'. {file}; printf %s "$K_1"'], capture_output=True, check=True)
    assert said.stdout.decode() == parsed(file.read_bytes(), "K_1")


PIECES = [b"K", b"=", b"'", b"#", b" ", b"\n", b"\r", b"\xff", b"v"]


@given(st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_no_other_error_escapes(content: bytes) -> None:
    try:
        parsed(content)
    except EnvFileError as fault:
        assert str(fault).startswith("invalid environment variable format")


def test_lines_without_end_are_not_read_to_it() -> None:
    comments = b"#" + b"x" * 1022 + b"\n"
    assert parsed(comments * 1023 + b"K='v'\n") == "v"
    with pytest.raises(EnvFileError, match="more to read than 1048576 bytes"):
        parsed(comments * 1024 + b"K='v'\n")


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "outside.env").write_text("K='outside'\n")
    made = tmp_path / "volume"
    (made / "deep").mkdir(parents=True)
    (made / "deep/file.env").write_text("K='inside'\n")
    return made


def read(volume: Path, path: str, name: str = "K") -> FoundInFile:
    key = FileKey("v", path, name)
    return read_env_files([key], {"v": MountedVolume(volume)})[key]


@pytest.mark.parametrize("path", ["deep/file.env", "/deep/file.env", "./deep//file.env"])
def test_a_key_is_read_where_the_file_has_it(volume: Path, path: str) -> None:
    assert read(volume, path) == FoundInFile(str(volume / "deep/file.env"), "inside")
    assert read(volume, path, "OTHER") == FoundInFile(str(volume / "deep/file.env"), "")


def test_a_volume_that_is_not_there_has_no_keys() -> None:
    assert read_env_files([FileKey("v", "a", "K")], {}) == {}


@pytest.mark.parametrize(
    "target",
    ["deep/file.env", "/deep/file.env", "//deep/file.env", "../deep/file.env", "/../../deep/file.env"],
)
def test_links_never_leave_the_volume(volume: Path, target: str) -> None:
    (volume / "link").symlink_to(target)
    assert read(volume, "link").value == "inside"


@pytest.mark.parametrize(
    "target", ["../outside.env", "{outside}", "/{outside}", "link", "gone/../deep/file.env"]
)
def test_what_is_outside_is_not_there(volume: Path, target: str, caplog: pytest.LogCaptureFixture) -> None:
    (volume / "link").symlink_to(target.format(outside=volume.parent / "outside.env"))
    with caplog.at_level(logging.WARNING):
        assert read(volume, "link").value is None
    assert f"cannot take variables from {volume}/link" in caplog.text


def test_what_is_missing_or_no_file_is_told_from_an_empty_file(volume: Path) -> None:
    os.mkfifo(volume / "pipe")
    (volume / "empty").touch()
    (volume / "wrong").write_text("K=v\n")
    assert [read(volume, name).value for name in ("none/none", "deep", "pipe", "wrong")] == [None] * 4
    assert read(volume, "empty").value == ""
    assert not (volume / "none").exists()
