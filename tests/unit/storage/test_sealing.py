"""Values sealed and opened again, or refused: who changes a byte, takes another key or another object's value
is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.storage.ciphers import AesCbc, AesGcm, SecretBox
from podling.storage.sealing import PLAIN, SEALED, Key, Provider, SealedValueError, Sealing

SECRETS = "/registry/secrets/"
NAME = SECRETS + "default/a"
VALUE = b'{"kind":"Secret","data":{"a":"aHVzaA=="}}'
WAYS: dict[str, Callable[[bytes], Provider]] = {
    "aesgcm": AesGcm,
    "aescbc": AesCbc,
    "secretbox": SecretBox,
}


def key(way: str, name: str, secret: bytes = bytes(32)) -> Key:
    return Key(SEALED + f"{way}:v1:{name}:".encode(), WAYS[way](secret))


def sealing(*keys: Key) -> Sealing:
    return Sealing({SECRETS: keys, "/registry/apps/deployments/": keys})


def _opened(one: Sealing, stored: bytes) -> tuple[bytes, bool]:
    """The value, and whether it is stale."""
    value, mark = one.open(NAME, stored)
    assert one.knows(NAME, mark)
    return value, one.is_stale(NAME, mark)


@pytest.mark.parametrize(
    ("way", "length"),
    [*((way, length) for way in ("aesgcm", "aescbc") for length in (16, 24, 32)), ("secretbox", 32)],
)
@given(value=st.binary().map(lambda tail: b"{" + tail))
def test_what_was_sealed_is_opened(way: str, length: int, value: bytes) -> None:
    one = sealing(key(way, "k", bytes(length)))
    stored = one.seal(NAME, value).stored
    assert stored.startswith(b"k8s:enc:%b:v1:k:" % way.encode())
    assert _opened(one, stored) == (value, False)
    assert one.seal(NAME, value).stored != stored, "the same value twice looks different"


@pytest.mark.parametrize("way", WAYS)
def test_another_key_of_that_name_does_not_open_it(way: str) -> None:
    stored = sealing(key(way, "k", bytes(32))).seal(NAME, VALUE).stored
    with pytest.raises(SealedValueError, match="it was changed, or sealed with another key of that name"):
        sealing(key(way, "k", b"1" * 32)).open(NAME, stored)


@pytest.mark.parametrize("way", ["aesgcm", "secretbox"])
def test_no_byte_of_it_can_be_changed(way: str) -> None:
    one = sealing(key(way, "k"))
    stored = one.seal(NAME, VALUE).stored
    for place in range(len(stored)):
        changed = stored[:place] + bytes([stored[place] ^ 1]) + stored[place + 1 :]
        with pytest.raises(SealedValueError):
            one.open(NAME, changed)
        with pytest.raises(SealedValueError):
            one.open(NAME, stored[:place])


def test_one_objects_value_is_not_anothers() -> None:
    one = sealing(key("aesgcm", "k"))
    with pytest.raises(SealedValueError):
        one.open(SECRETS + "default/b", one.seal(NAME, VALUE).stored)


@pytest.mark.parametrize(
    ("keys", "is_stale"),
    [
        ([key("aesgcm", "old")], False),
        ([key("aesgcm", "new"), key("aesgcm", "old")], True),
        ([key("aesgcm", "old", b"1" * 32), key("aesgcm", "old")], True),
        ([key("aescbc", "old"), *PLAIN, key("aesgcm", "old")], True),
        ([*PLAIN, key("aesgcm", "old")], True),
    ],
)
def test_the_first_key_seals_and_all_open(keys: list[Key], is_stale: bool) -> None:
    stored = sealing(key("aesgcm", "old")).seal(NAME, VALUE).stored
    now = sealing(*keys)
    assert _opened(now, stored) == (VALUE, is_stale)
    again = now.seal(NAME, VALUE).stored
    assert again.startswith(keys[0].prefix)
    assert _opened(now, again) == (VALUE, False)


@pytest.mark.parametrize(
    ("stored", "keys", "why"),
    [
        (b"k8s:enc:aesgcm:v1:gone:x", [key("aesgcm", "k")], 'sealed by aesgcm with the key "gone"'),
        (b"k8s:enc:kms:v2:far:x", [key("aesgcm", "k"), *PLAIN], 'sealed by kms with the key "far"'),
        (b"k8s:enc:", [key("aesgcm", "k")], 'sealed by  with the key ""'),
        (b"k8s:enc:\xff:v1:" + bytes(9999), [key("aesgcm", "k")], "sealed by \ufffd with the key"),
        (VALUE, [key("aesgcm", "k")], "does not give identity for its resource"),
    ],
)
def test_what_no_key_opens_is_named(stored: bytes, keys: list[Key], why: str) -> None:
    with pytest.raises(SealedValueError, match=why) as refused:
        sealing(*keys).open(NAME, stored)
    assert len(str(refused.value)) < 1000


def test_resources_have_their_own_keys() -> None:
    one = sealing(key("aesgcm", "k"))
    for name in ("/registry/apps/deployments/default/a", NAME):
        assert one.seal(name, VALUE).stored.startswith(SEALED)
    for name in (
        "/registry/apps/secrets/default/a",
        "/registry/secretsand/default/a",
        "/registry/apps/x/a/b",
    ):
        assert one.seal(name, VALUE).stored == VALUE
        assert one.open(name, VALUE) == (VALUE, b"")
        with pytest.raises(SealedValueError, match="does not give for its resource"):
            one.open(name, SEALED + b"aesgcm:v1:k:")
