"""Values at rest: sealed with a key, in the forms of kube-apiserver's encryption at rest.

What is stored begins with `k8s:enc:PROVIDER:v1:KEY:`, by which the key is found again; a value that is not
sealed begins with `{`. The first key of a resource seals what is written, all of them open what is read. A
value that another than the first has sealed is stale: it is to be written again. Which one has is told by its
mark; that of what is not sealed is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol

SEALED = b"k8s:enc:"
_LONGEST_PREFIX = 512
NOT_OF_THIS_KEY = "it was changed, or sealed with another key of that name"


class SealedValueError(Exception):
    """A value cannot be opened; the message says why, as the end of a sentence about its storage key."""


class PassingError(SealedValueError):
    """Whoever has the key was not reached, or did not open it; it may do so later."""


class Sealed(NamedTuple):
    stored: bytes
    mark: bytes


class Opened(NamedTuple):
    value: bytes
    mark: bytes


class Provider(Protocol):
    """One way to seal, with one key or with those of a plugin. `key` is the storage key of the value."""

    def check(self) -> None:
        """Raises NotSealedError if it cannot seal now. Must not block."""
        ...

    def mark(self) -> bytes:
        """That of what it seals now."""
        ...

    def knows(self, mark: bytes) -> bool:
        """Whether it opens what has this mark."""
        ...

    def seal(self, value: bytes, key: bytes) -> Sealed:
        """Raises NotSealedError."""
        ...

    def open(self, sealed: bytes, key: bytes) -> Opened:
        """Raises SealedValueError."""
        ...


class OneKey:
    """The part of a provider that always has the same key."""

    def __init__(self, secret: bytes) -> None:
        self._mark = sha256(secret).digest()[:8]

    def check(self) -> None:
        """It always can."""

    def mark(self) -> bytes:
        return self._mark

    def knows(self, mark: bytes) -> bool:
        return mark == self._mark


class Identity(OneKey):
    """Values as they are."""

    def __init__(self) -> None:
        self._mark = b""

    def seal(self, value: bytes, key: bytes) -> Sealed:
        return Sealed(value, b"")

    def open(self, sealed: bytes, key: bytes) -> Opened:
        if sealed.startswith(SEALED):
            raise SealedValueError(_no_key(sealed))
        return Opened(sealed, b"")


class Key(NamedTuple):
    """`prefix`: what begins each value that `provider` has sealed; empty for Identity."""

    prefix: bytes
    provider: Provider


PLAIN = (Key(b"", Identity()),)


class Sealing:
    """`keys_of`: the keys of a resource, by the prefix of its objects' storage keys. Values of other
    resources are not sealed. The keys may be replaced while others seal and open."""

    def __init__(self, keys_of: Mapping[str, Sequence[Key]]) -> None:
        self.keys_of = keys_of
        self._marks: dict[bytes, bytes] = {}

    def check(self, key: str) -> None:
        """Raises NotSealedError if what has this storage key cannot be sealed now."""
        self._keys(key)[0].provider.check()

    def seal(self, key: str, value: bytes) -> Sealed:
        """Raises NotSealedError."""
        prefix, provider = self._keys(key)[0]
        sealed = provider.seal(value, key.encode())
        return Sealed(prefix + sealed.stored, self._one(prefix + sealed.mark))

    def open(self, key: str, stored: bytes) -> Opened:
        """Raises SealedValueError."""
        refused: SealedValueError | None = None
        for prefix, provider in self._keys(key):
            if not stored.startswith(prefix):
                continue
            try:
                opened = provider.open(stored[len(prefix) :], key.encode())
                return Opened(opened.value, self._one(prefix + opened.mark))
            except SealedValueError as error:
                # Another key may have the same name; Identity knows least of what is sealed.
                refused = error if prefix or refused is None else refused
        raise refused or SealedValueError(_no_key(stored))

    def is_stale(self, key: str, mark: bytes) -> bool:
        """Whether what has this mark would have another one if it were written again."""
        prefix, provider = self._keys(key)[0]
        return mark != prefix + provider.mark()

    def knows(self, key: str, mark: bytes) -> bool:
        """Whether what has this mark can be opened."""
        return any(
            mark.startswith(prefix) and provider.knows(mark[len(prefix) :])
            for prefix, provider in self._keys(key)
        )

    def _one(self, mark: bytes) -> bytes:
        """The same for all that have it: there are few, and many values."""
        return self._marks.setdefault(mark, mark)

    def _keys(self, key: str) -> Sequence[Key]:
        # /registry/secrets/… or /registry/apps/deployments/…
        place = key.find("/", key.find("/", 1) + 1) + 1
        found = self.keys_of.get(key[:place])
        if found is None:
            found = self.keys_of.get(key[: key.find("/", place) + 1], PLAIN)
        return found


NOTHING_SEALED = Sealing({})


def _no_key(stored: bytes) -> str:
    if not stored.startswith(SEALED):
        return "it is not sealed, and --encryption-provider-config does not give identity for its resource"
    _, _, provider, _, name, *_ = *stored[:_LONGEST_PREFIX].split(b":", 5), b"", b"", b""
    told = f'{provider.decode(errors="replace")} with the key "{name.decode(errors="replace")}"'
    return f"it was sealed by {told}, which --encryption-provider-config does not give for its resource"
