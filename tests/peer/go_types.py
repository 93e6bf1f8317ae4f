"""The API types of Kubernetes as its own program has them, read from the reflection data in the executable.

OpenAPI does not say in which order Go writes the fields of a type, which it writes when they are empty, nor
their protobuf numbers; the tags of the struct fields do. The layout of the data is that of Go's
`internal/abi` (`Type`, `StructType`, `Name`), 64 bit, little endian.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = (
    "k8s.io/api/",
    "k8s.io/apimachinery/pkg/apis/meta/v1",
    "k8s.io/kube-aggregator/pkg/apis/",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.",
)
NAMED, HAS_UNCOMMON = 4, 1
TAGGED = 2
KIND_MASK = 31
POINTER, SLICE, MAP, STRUCT = 22, 23, 21, 25
UNCOMMON_AFTER = {STRUCT: 80, POINTER: 56, SLICE: 56, 17: 72, 18: 64, 19: 56, 20: 80}
"""Where the package's name follows a type of a kind; 48 for all others."""
MOST_FIELDS = 400


class GoField(NamedTuple):
    """One field of a struct. `wire` is empty for an embedded struct whose fields JSON shows as its own."""

    wire: str
    type: str
    left_out: str
    """"" for never, "empty" if it is empty (which a struct never is), "zero" if all of it is zero."""
    number: int
    """That of protobuf, 0 for none."""


class Section(NamedTuple):
    address: int
    offset: int
    size: int


def go_types(program: Path) -> dict[str, list[GoField]]:
    """The fields of each struct by `PACKAGE.NAME`, in the order in which Go writes them."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
        return dict(_Image(image).structs())


class _Image:
    """The executable: an ELF file with a section of its own for Go's types."""

    def __init__(self, image: mmap.mmap) -> None:
        self._image = image
        self._sections = dict(self._read_sections())
        self._types = self._sections[".go.type"]

    def structs(self) -> Iterator[tuple[str, list[GoField]]]:
        types = self._types
        for address in range(types.address, types.address + types.size - UNCOMMON_AFTER[STRUCT], 8):
            if self._kind(address) != STRUCT:
                continue
            fields, count, capacity = self._words(address + 56, 3)
            if count != capacity or not 0 < count <= MOST_FIELDS or self._offset(fields) is None:
                continue
            name = self._type_name(address)
            if name.startswith(PACKAGES):
                yield name, [self._field(fields + 24 * index) for index in range(count)]

    def _read_sections(self) -> Iterator[tuple[str, Section]]:
        (headers,) = struct.unpack_from("<Q", self._image, 40)
        count, names = struct.unpack_from("<HH", self._image, 60)
        read = [struct.unpack_from("<IIQQQQ", self._image, headers + 64 * index) for index in range(count)]
        for name, _, _, address, offset, size in read:
            begin = read[names][4] + name
            yield self._image[begin : self._image.find(b"\0", begin)].decode(), Section(address, offset, size)

    def _offset(self, address: int) -> int | None:
        begin = address - self._types.address
        return begin + self._types.offset if 0 <= begin < self._types.size else None

    def _at(self, address: int) -> int:
        offset = self._offset(address)
        assert offset is not None, f"no type at {address:x}"
        return offset

    def _words(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{count}Q", self._image, self._at(address))

    def _kind(self, address: int) -> int:
        return self._image[self._at(address) + 23] & KIND_MASK

    def _flags(self, address: int) -> int:
        return self._image[self._at(address) + 20]

    def _text(self, offset: int) -> tuple[str, int]:
        """A text after its length, and where it ends."""
        length = shift = 0
        while True:
            byte = self._image[offset]
            offset, length, shift = offset + 1, length | (byte & 127) << shift, shift + 7
            if byte < 128:
                return self._image[offset : offset + length].decode(errors="replace"), offset + length

    def _named(self, reference: int) -> str:
        """The name at the reference, which counts from the begin of the section."""
        return self._text(self._at(self._types.address + reference) + 1)[0]

    def _type_name(self, address: int) -> str:
        """`PACKAGE.NAME` of a named type; what Go calls any other."""
        (reference,) = struct.unpack_from("<i", self._image, self._at(address) + 40)
        name = self._named(reference).removeprefix("*")
        if not self._flags(address) & HAS_UNCOMMON or self._kind(address) == MAP:
            return name
        after = UNCOMMON_AFTER.get(self._kind(address), 48)
        (package,) = struct.unpack_from("<i", self._image, self._at(address) + after)
        return f"{self._named(package)}.{name.rpartition('.')[2]}" if package else name

    def _type(self, address: int) -> str:
        """As Go would write it, with whole packages: `*k8s.io/api/core/v1.PodOS`."""
        kind = self._kind(address)
        if kind in (POINTER, SLICE) and not self._flags(address) & NAMED:
            return ("*" if kind == POINTER else "[]") + self._type(self._words(address + 48, 1)[0])
        return self._type_name(address)

    def _field(self, address: int) -> GoField:
        name, type_, _ = self._words(address, 3)
        flags = self._image[self._at(name)]
        own, end = self._text(self._at(name) + 1)
        tag = self._text(end)[0] if flags & TAGGED else ""
        said = re.search(r'json:"([^"]*)"', tag)
        wire, *options = said[1].split(",") if said else [own]
        number = re.search(r'protobuf:"\w+,(\d+)', tag)
        left_out = next((what for what in ("zero", "empty") if f"omit{what}" in options), "")
        return GoField(wire, self._type(type_), left_out, int(number[1]) if number else 0)
