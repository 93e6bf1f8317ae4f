"""Files become archives and archives files: exactly, and never anywhere but where they shall."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from podling.remote import unpack as unpacking
from podling.remote.unpack import Incomplete, pack, part_of, unpack


@dataclass
class Heard:
    size: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def passed(self, count: int) -> None:
        self.size += count

    def copied(self, name: str, digest: str) -> None:
        self.digests[name] = digest

    def failed(self, name: str, why: str) -> None:
        self.faults[name] = why


def member(
    name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"", link: str = "", mode: int = 0o644
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname, info.mode = kind, len(data), link, mode
    return info, data


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    made.seek(0)
    return made


TOP = member(".", tarfile.DIRTYPE, mode=0o750)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "sub").mkdir(parents=True)
    (top / os.fsdecode(b"raw \xff\n name")).write_bytes(b"raw")
    (top / ("long" * 60)).write_bytes(b"x" * 600_000)
    (top / "sub/run").write_bytes(b"#!")
    (top / "sub/run").chmod(0o755)
    (top / "same").hardlink_to(top / "sub/run")
    (top / "link").symlink_to("/etc/passwd")
    (top / "empty").mkdir(mode=0o700)
    (top / "empty").chmod(0o500)
    os.utime(top / "sub/run", (1, 1_000_000_000))
    return top


def test_what_is_packed_is_unpacked_as_it_was(tree: Path, tmp_path: Path) -> None:
    """Names of any bytes, long ones, modes, times, links of both kinds, directories nobody may write into."""
    stream, sent, got = io.BytesIO(), Heard(), Heard()
    pack(stream, tree, "ignored", (7, 8), sent)
    stream.seek(0)
    into = tmp_path / "into"
    unpack(stream, into, got)
    assert (sent.faults, got.faults) == ({}, {})
    assert sent.digests == got.digests and sent.size == got.size
    for path in tree.rglob("*"):
        copied, there = into / path.relative_to(tree), path.lstat()
        found = copied.lstat()
        assert stat.S_IFMT(found.st_mode) == stat.S_IFMT(there.st_mode), path
        if path.is_symlink():
            assert copied.readlink() == path.readlink()
            continue
        assert stat.S_IMODE(found.st_mode) == stat.S_IMODE(there.st_mode), path
        if path.is_file():
            assert copied.read_bytes() == path.read_bytes()
            assert int(found.st_mtime) == int(there.st_mtime)
    assert (into / "same").samefile(into / "sub/run")
    stream.seek(0)
    with tarfile.open(fileobj=stream) as tar:
        assert {(info.uid, info.gid, info.uname) for info in tar} == {(7, 8, "")}


def test_one_file_gets_the_name_it_shall_have(tree: Path, tmp_path: Path) -> None:
    stream, heard = io.BytesIO(), Heard()
    pack(stream, tree / "sub/run", "other", (0, 0), heard)
    stream.seek(0)
    unpack(stream, tmp_path / "third", heard)
    assert (tmp_path / "third").read_bytes() == b"#!"
    assert heard.digests["third"] == heard.digests["other"] == sha256(b"#!").hexdigest()


@pytest.mark.parametrize(
    "bad",
    [
        [member("../out", data=b"x")],
        [member("/tmp/out", data=b"x")],
        [member("a", tarfile.SYMTYPE, link=".."), member("a/out", data=b"x")],
        [member("a", tarfile.SYMTYPE, link="/"), member("a/out", tarfile.DIRTYPE)],
        [member("a", tarfile.LNKTYPE, link="../outside")],
        [member("a", tarfile.SYMTYPE, link=".."), member("b", tarfile.LNKTYPE, link="a/outside")],
        [member("a", tarfile.FIFOTYPE)],
        [member("a", tarfile.CHRTYPE)],
        [member("there/file/x", data=b"x")],
        [member("there", data=b"x")],
    ],
)
def test_what_would_come_elsewhere_is_refused_and_the_rest_goes_on(
    tmp_path: Path, bad: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    (tmp_path / "outside").write_text("mine")
    into = tmp_path / "into"
    (into / "there").mkdir(parents=True)
    (into / "there/file").write_text("old")
    heard = Heard()
    unpack(archive(TOP, *bad, member("last", data=b"last")), into, heard)
    assert len(heard.faults) == 1
    assert (into / "last").read_bytes() == b"last"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["into", "outside"]
    assert (tmp_path / "outside").stat().st_nlink == 1
    assert (into / "there/file").read_text() == "old"


def test_a_link_that_is_there_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("mine")
    into = tmp_path / "into"
    into.mkdir()
    (into / "a").symlink_to(tmp_path / "outside")
    (into / "a.podling-part").symlink_to(tmp_path / "outside")
    unpack(archive(TOP, member("a", data=b"new", mode=0o6755)), into, heard := Heard())
    assert heard.faults == {}
    assert (tmp_path / "outside").read_text() == "mine"
    assert (into / "a").read_bytes() == b"new"
    assert stat.S_IMODE((into / "a").stat().st_mode) == 0o755


def test_one_file_is_one_file(tmp_path: Path) -> None:
    """Whatever else comes, and never a link."""
    unpack(archive(member("./a", data=b"a"), member("./b", data=b"b")), tmp_path / "c", Heard())
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    with pytest.raises(OSError, match="neither a file nor a directory"):
        unpack(archive(member("./a", tarfile.SYMTYPE, link="/etc")), tmp_path / "d", Heard())


@pytest.mark.parametrize("length", [0, 100, 1200, 500_000])
def test_an_archive_that_ends_too_soon_is_told_of(tmp_path: Path, length: int) -> None:
    whole = archive(TOP, member("a", data=b"x" * 600_000), member("b", data=b"b")).getvalue()
    with pytest.raises(Incomplete):
        unpack(io.BytesIO(whole[:length]), tmp_path / "into", Heard())
    assert not (tmp_path / "into/a").exists()


def header(kind: bytes, size: int, body: bytes = b"") -> bytes:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT) + body


class Endless(io.RawIOBase):
    """An archive that goes on for ever."""

    def __init__(self, begin: bytes, more: bytes) -> None:
        self.begin, self.more, self.given = begin, more, 0

    def read(self, count: int = -1) -> bytes:
        if not self.begin:
            self.begin = self.more * (count // len(self.more) + 1)
        piece, self.begin = self.begin[:count], self.begin[count:]
        self.given += len(piece)
        assert self.given < 64 * 1024 * 1024
        return piece


def first(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """An archive without its end."""
    return archive(*members).getvalue()[: 512 * len(members)]


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (header(tarfile.GNUTYPE_LONGNAME, 2**40), b"x" * 512),
        (header(tarfile.XHDTYPE, 2**40), b"x" * 512),
        (b"", header(tarfile.XGLTYPE, 12, b"12 path=abc\n".ljust(512, b"\0"))),
        (b"", header(tarfile.GNUTYPE_LONGNAME, 3, b"abc".ljust(512, b"\0"))),
    ],
    ids=["a name", "a header", "headers of headers", "names of names"],
)
def test_what_tarfile_would_keep_has_an_end(
    tmp_path: Path, begin: bytes, more: bytes, is_first: bool
) -> None:
    source = Endless((b"" if is_first else first(TOP)) + begin, more)
    with pytest.raises(Incomplete):
        unpack(source, tmp_path / "into", Heard())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("length", "damaged"),
    [(10_240, 1536), (1536, None), (1600, None), (2560, None)],
    ids=["no header", "nothing", "half a header", "no end"],
)
def test_only_its_end_ends_an_archive(tmp_path: Path, length: int, damaged: int | None) -> None:
    """tarfile takes anything else for it, too, and the rest would be lost without a word."""
    sent = bytearray(archive(TOP, member("a", data=b"a"), member("b", data=b"b")).getvalue()[:length])
    if damaged is not None:
        sent[damaged] ^= 1
    with pytest.raises(Incomplete, match="the archive is not complete: "):
        unpack(io.BytesIO(sent), tmp_path / "into", Heard())
    assert (tmp_path / "into/a").read_bytes() == b"a"


def test_headers_that_are_nonsense_are_told_of(tmp_path: Path) -> None:
    for number, record in enumerate((b"20 mtime=nan\n", b"20 mtime=inf\n", b"%d size=1\n" % 10**60)):
        body = record.replace(b"20", str(len(record)).encode(), 1) if number < 2 else record
        pax = header(tarfile.XHDTYPE, len(body), body.ljust(512, b"\0"))
        end = archive(member("a", data=b"a")).getvalue()
        into, heard = tmp_path / str(number), Heard()
        try:
            unpack(io.BytesIO(first(TOP) + pax + end), into, heard)
        except Incomplete:
            continue
        assert heard.faults == {} and (into / "a").read_bytes() == b"a"
    long = archive(TOP, member("a/" * 3000 + "b", data=b"b"), member("last", data=b"l"))
    unpack(long, tmp_path / "long", heard := Heard())
    assert [*heard.faults.values()] == ["its name has more than 4096 characters"]
    assert sorted(path.name for path in (tmp_path / "long").iterdir()) == ["last"]


def test_a_disk_that_is_full_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(file: object, piece: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(unpacking, "_write", write)
    with pytest.raises(OSError, match="No space left"):
        unpack(archive(TOP, member("a", data=b"x"), member("b", data=b"b")), tmp_path / "into", Heard())


def test_what_cannot_be_read_is_told_of_and_the_rest_packed(tree: Path) -> None:
    heard, stream = Heard(), io.BytesIO()
    os.mkfifo(tree / "pipe")
    pack(stream, tree, "", (0, 0), heard)
    assert heard.faults == {"./pipe": "neither file, directory nor link"}
    assert len(heard.digests) == 3
    with pytest.raises(FileNotFoundError):
        pack(stream, tree / "none", "", (0, 0), heard)


def test_a_file_that_shrinks_is_padded_and_told_of(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, stream = Heard(), io.BytesIO()
    real = tarfile.TarFile.gettarinfo

    def gettarinfo(tar: tarfile.TarFile, name: str, arcname: str) -> tarfile.TarInfo:
        info = real(tar, name, arcname)
        if arcname == "./same":
            info.size += 5
        return info

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", gettarinfo)
    pack(stream, tree, "", (0, 0), heard)
    assert heard.faults == {"./same": "it became shorter while it was read"}
    stream.seek(0)
    unpack(stream, tmp_path / "into", got := Heard())
    assert (got.faults, (tmp_path / "into/same").read_bytes()) == ({}, b"#!\0\0\0\0\0")


def test_a_part_has_a_name_that_a_file_system_takes(tmp_path: Path) -> None:
    for name in ("a", "x" * 255):
        part = part_of(tmp_path / name)
        part.write_bytes(b"")
        assert part.name.endswith(".podling-part") and part.parent == tmp_path
