"""Values sealed with the help of a KMS plugin (issue 13, part 6): what it is asked for and when, which of its
answers are refused, and how long podling goes on without it. The plugin here is a value; `test_plugin.py` has
one behind a socket."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec
import pytest

from podling.process.histogram import Histogram
from podling.storage.interface import NotSealedError
from podling.storage.kms.envelope import HEALTHY, LONGEST_WITHOUT, UNHEALTHY, Kms
from podling.storage.kms.plugin import Encrypted, PluginError, Status
from podling.storage.sealing import PassingError, SealedValueError

NAME = b"/registry/secrets/default/a"
VALUE = b'{"kind":"Secret"}'


class Vault(msgspec.Struct):
    """It encrypts by writing its key in front."""

    status_is: Status = Status("v2", "ok", "one")
    is_down: bool = False
    calls: list[str] = []

    @property
    def latencies(self) -> Mapping[tuple[str, str], Histogram]:
        return {}

    def status(self) -> Status:
        self._called("Status")
        return self.status_is

    def encrypt(self, plain: bytes, uid: str) -> Encrypted:
        self._called("Encrypt")
        key = self.status_is.key_id
        return Encrypted(key.encode() + plain, key, (("kms.example.org", b"1"),))

    def decrypt(self, encrypted: Encrypted, uid: str) -> bytes:
        self._called("Decrypt")
        return encrypted.ciphertext.removeprefix(encrypted.key_id.encode())

    def close(self) -> None:
        """It has nothing open."""

    def _called(self, method: str) -> None:
        self.calls.append(method)
        if self.is_down:
            raise PluginError("rpc error: code = Unavailable desc = nobody listens")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Made(NamedTuple):
    vault: Vault
    kms: Kms
    clock: Clock


@pytest.fixture
def made() -> Made:
    vault, clock = Vault(), Clock()
    kms = Kms("a", vault, clock)
    kms.look()
    return Made(vault, kms, clock)


def test_writes_ask_the_plugin_nothing(made: Made) -> None:
    vault, kms, clock = made
    sealed = [kms.seal(VALUE, NAME) for _ in range(10)]
    assert len({one.stored for one in sealed}) == 10
    assert [kms.open(one.stored, NAME) for one in sealed] == [(VALUE, b"one")] * 10
    kms.look()
    assert vault.calls == ["Status", "Encrypt", "Status"]
    assert {way: used.times for (way, _), used in kms.used.items()} == {"to_storage": 10, "from_storage": 10}
    another = Kms("a", vault, clock)
    assert {another.open(one.stored, NAME) for one in sealed} == {(VALUE, b"one")}
    assert vault.calls[3:] == ["Decrypt"], "a seed is decrypted once"


def test_another_key_seals_from_then_on_and_the_old_is_known(made: Made) -> None:
    vault, kms, _ = made
    old = kms.seal(VALUE, NAME)
    vault.status_is = Status("v2", "ok", "two")
    assert kms.mark() == old.mark == b"one"
    kms.look()
    assert (kms.mark(), kms.fault) == (b"two", "")
    assert kms.seal(VALUE, NAME).mark == b"two"
    assert kms.open(old.stored, NAME) == (VALUE, b"one")
    assert "Decrypt" not in vault.calls


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (Status("v2", "sick", "one"), "got unexpected healthz status: sick"),
        (Status("v1", "ok", "one"), "expected KMSv2 API version v2, got v1"),
        (Status("v2", "ok", ""), 'got invalid KMSv2 KeyID hash "": keyID is empty'),
        (
            Status("v2", "ok", "\u00e4" * 513),
            r'got invalid KMSv2 KeyID hash "sha256:\w+": keyID is 1026 bytes, which exceeds',
        ),
        (Status("", "", ""), r"\[got unexpected .*, expected KMSv2 .*, got invalid .*\]"),
    ],
)
def test_a_status_that_is_not_well(made: Made, status: Status, why: str) -> None:
    vault, kms, _ = made
    assert kms.pause == HEALTHY
    vault.status_is = status
    kms.look()
    with pytest.raises(AssertionError, match=f"kmsv2 Provider a is not healthy, error: {why}"):
        assert not kms.fault, kms.fault
    assert kms.pause == UNHEALTHY
    kms.check()
    vault.status_is = Status("v2beta1", "ok", "one")
    kms.look()
    assert kms.fault == ""


def test_it_goes_on_for_a_while_without_the_plugin(made: Made) -> None:
    vault, kms, clock = made
    vault.is_down = True
    sealed = kms.seal(VALUE, NAME)
    kms.look()
    assert kms.fault == "rpc error: code = Unavailable desc = nobody listens"
    clock.now += LONGEST_WITHOUT
    kms.check()
    clock.now += 1
    with pytest.raises(NotSealedError, match=r'keyID hash "sha256:\w+" expired at 1970-01-01T00:19:40Z'):
        kms.check()
    assert kms.open(sealed.stored, NAME).value == VALUE, "what is known is opened without it"
    with pytest.raises(PassingError, match="the KMS plugin a did not decrypt its key: rpc error"):
        Kms("a", vault, clock).open(sealed.stored, NAME)
    vault.is_down = False
    kms.look()
    kms.check()
    assert kms.open(sealed.stored, NAME).value == VALUE


def test_a_plugin_that_was_never_there(made: Made) -> None:
    kms = Kms("a", Vault(is_down=True), made.clock)
    kms.look()
    for attempt in (kms.check, lambda: kms.seal(VALUE, NAME)):
        with pytest.raises(NotSealedError, match="got unexpected nil transformer"):
            attempt()
    assert kms.mark() == b""


def test_what_was_changed_or_moved_is_not_opened(made: Made) -> None:
    kms = made.kms
    stored = kms.seal(VALUE, NAME).stored
    with pytest.raises(SealedValueError):
        kms.open(stored, NAME + b"b")
    for place in range(len(stored)):
        changed = stored[:place] + bytes([stored[place] ^ 1]) + stored[place + 1 :]
        # The notes are for the plugin to judge.
        with suppress(SealedValueError):
            assert kms.open(changed, NAME).value == VALUE
        with pytest.raises(SealedValueError):
            kms.open(stored[:place], NAME)
