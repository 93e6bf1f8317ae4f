"""SPDY header blocks: a conversation both sides can follow, and what is refused."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.streaming.spdy.headers import DICTIONARY, MAX_BLOCK, HeaderReader, HeaderWriter, parse_block
from podling.streaming.wire import ProtocolError

names = st.text(st.characters(codec="ascii", categories=["Ll", "Nd"]), min_size=1, max_size=20)
values = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
header_maps = st.dictionaries(names, values, max_size=6)


def test_the_dictionary_is_the_protocols() -> None:
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2


@given(st.lists(header_maps, max_size=5))
def test_blocks_written_one_after_the_other_are_read_in_order(blocks: list[dict[str, str]]) -> None:
    writer, reader = HeaderWriter(), HeaderReader()
    assert [reader.read(writer.write(block)) for block in blocks] == blocks


def test_names_go_in_lower_case() -> None:
    assert HeaderReader().read(HeaderWriter().write({"streamType": "stdin"})) == {"streamtype": "stdin"}


def pair(name: bytes, value: bytes) -> bytes:
    return struct.pack(">I", len(name)) + name + struct.pack(">I", len(value)) + value


def test_several_values_are_joined() -> None:
    assert parse_block(b"\0\0\0\1" + pair(b"a", b"1\x002")) == {"a": "1,2"}


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\0\0\0\1",
        b"\0\0\0\0extra",
        b"\0\0\0\1" + pair(b"Upper", b""),
        b"\0\0\0\1" + pair(b"", b""),
        b"\0\0\0\2" + pair(b"a", b"1") + pair(b"a", b"2"),
        b"\0\0\0\1" + pair(b"a", b"\xff"),
        b"\xff\xff\xff\xff",
        b"\0\0\0\1\xff\xff\xff\xff",
    ],
)
def test_a_malformed_block_is_a_protocol_error(block: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_block(block)


def test_a_block_that_inflates_without_end_is_refused() -> None:
    deflate = zlib.compressobj(zdict=DICTIONARY)
    bomb = deflate.compress(b"\0\0\0\1\0\0\0\1a\1\0\0\0" + bytes(16 * MAX_BLOCK)) + deflate.flush(
        zlib.Z_SYNC_FLUSH
    )
    with pytest.raises(ProtocolError, match="more than"):
        HeaderReader().read(bomb)


@given(st.binary(max_size=200))
def test_random_bytes_raise_only_the_declared_error(data: bytes) -> None:
    for read in (parse_block, HeaderReader().read):
        with suppress(ProtocolError):
            read(data)
