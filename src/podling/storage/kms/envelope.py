"""Values sealed under a key that a KMS plugin keeps, in Kubernetes' form (`kms.proto`, EncryptedObject).

The plugin encrypts a seed, made here, once for each of its keys; the key of a value is derived from the seed
and random bytes stored with the value (HKDF-Expand with SHA-256), and seals it as `aesgcm` does. So writes
ask the plugin nothing. It is asked for its status at times (`look`), and for a seed when one is first opened.

What is sealed is opened for as long as this process lives, plugin or not. Sealing goes on without the plugin
for LONGEST_WITHOUT after it was last heard of.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from google.protobuf.message import DecodeError

import podling.storage.kms.kms_pb2 as pb
from podling.model import names
from podling.model.errors import joined
from podling.storage.interface import NotSealedError
from podling.storage.kms.plugin import Encrypted, Plugin, PluginError
from podling.storage.sealing import NOT_OF_THIS_KEY, Opened, PassingError, Sealed, SealedValueError

LONGEST_WITHOUT = 180.0
"""Seconds."""
LONGEST_KEY_ID = LONGEST_CIPHERTEXT = 1024
LONGEST_ANNOTATIONS = 32 * 1024
HEALTHY, UNHEALTHY = 60.0, 10.0
"""Seconds until a plugin is to be looked at again."""
VERSIONS = frozenset({"v2", "v2beta1"})
_SEED = 32
_INFO = 32
_NONCE = 12
TO_STORAGE, FROM_STORAGE = "to_storage", "from_storage"


class _Seed(NamedTuple):
    seed: bytes
    encrypted: Encrypted
    uid: str
    until: float


class Used(NamedTuple):
    """How often a key was used, and when for the last time."""

    times: int
    last: float


class Kms:
    """A `Provider`. `name` is for faults; `now` gives seconds since the epoch."""

    def __init__(self, name: str, plugin: Plugin, now: Callable[[], float] = time.time) -> None:
        self.name = name
        self.plugin = plugin
        self._now = now
        self._current: _Seed | None = None
        self._seeds: dict[Encrypted, bytes] = {}
        self.fault = ""
        """Why the plugin is not healthy; empty while it is."""
        self.used: dict[tuple[str, str], Used] = {}
        """By way (TO_STORAGE, FROM_STORAGE) and hash of the key's ID."""
        self.told: dict[str, float] = {}
        """When the plugin last named a key, by the hash of its ID."""
        self.unnamed: dict[str, int] = {}
        """How often it named no key that can be, by what was wrong: `empty`, `too_long`."""

    @property
    def pause(self) -> float:
        return UNHEALTHY if self.fault else HEALTHY

    @property
    def seeds(self) -> int:
        return len(self._seeds)

    def look(self) -> None:
        """Ask how the plugin is, and have a seed encrypted if it has another key than before. Blocks."""
        until = self._now() + LONGEST_WITHOUT
        try:
            status = self.plugin.status()
        except PluginError as error:
            self.fault = str(error)
            return
        faults: list[str] = []
        if status.healthz != "ok":
            faults.append(f"got unexpected healthz status: {status.healthz}")
        if status.version not in VERSIONS:
            faults.append(f"expected KMSv2 API version v2, got {status.version}")
        hashed = _hash(status.key_id)
        if why := _key_id_fault(status.key_id):
            kind = "too_long" if status.key_id else "empty"
            self.unnamed[kind] = self.unnamed.get(kind, 0) + 1
            faults.append(f'got invalid KMSv2 KeyID hash "{hashed}": {why}')
        else:
            self.told[hashed] = self._now()
            faults += self._rotate(status.key_id, until)
        told = joined(faults)
        self.fault = told and f"kmsv2 Provider {self.name} is not healthy, error: {told}"

    def check(self) -> None:
        if self._current is None:
            raise NotSealedError("got unexpected nil transformer")
        if self._now() > self._current.until:
            key, end, now = _hash(self._current.encrypted.key_id), self._current.until, self._now()
            raise NotSealedError(
                f'encryptedDEKSource with keyID hash "{key}" expired at {_shown(end)} '
                f"(current time is {_shown(now)})"
            )

    def mark(self) -> bytes:
        return self._current.encrypted.key_id.encode() if self._current else b""

    def knows(self, mark: bytes) -> bool:
        return True

    def seal(self, value: bytes, key: bytes) -> Sealed:
        if self._current is None:
            raise NotSealedError("got unexpected nil transformer")
        seed, encrypted = self._current.seed, self._current.encrypted
        info, nonce = os.urandom(_INFO), os.urandom(_NONCE)
        stored = pb.EncryptedObject(
            encrypted_data=info + nonce + _cipher(seed, info).encrypt(nonce, value, key),
            key_id=encrypted.key_id,
            encrypted_source=encrypted.ciphertext,
            annotations=dict(encrypted.annotations),
            source_type=pb.HKDF_SHA256_XNONCE_AES_GCM_SEED,
        )
        self._count(TO_STORAGE, encrypted.key_id)
        return Sealed(stored.SerializeToString(deterministic=True), encrypted.key_id.encode())

    def open(self, sealed: bytes, key: bytes) -> Opened:
        try:
            stored = pb.EncryptedObject.FromString(sealed)
        except DecodeError as error:
            raise SealedValueError(NOT_OF_THIS_KEY) from error
        encrypted = Encrypted(
            stored.encrypted_source, stored.key_id, tuple(sorted(stored.annotations.items()))
        )
        if why := _fault(encrypted):
            raise SealedValueError(why)
        seed, data = self._seed(encrypted), stored.encrypted_data
        try:
            if stored.source_type == pb.HKDF_SHA256_XNONCE_AES_GCM_SEED:
                info, nonce, text = data[:_INFO], data[_INFO : _INFO + _NONCE], data[_INFO + _NONCE :]
                value = _cipher(seed, info).decrypt(nonce, text, key)
            else:
                value = AESGCM(seed).decrypt(data[:_NONCE], data[_NONCE:], key)
        except (InvalidTag, ValueError) as error:
            raise SealedValueError(NOT_OF_THIS_KEY) from error
        self._count(FROM_STORAGE, stored.key_id)
        return Opened(value, stored.key_id.encode())

    def _seed(self, encrypted: Encrypted) -> bytes:
        seed = self._seeds.get(encrypted)
        if seed is None:
            try:
                seed = self.plugin.decrypt(encrypted, str(uuid.uuid4()))
            except PluginError as error:
                raise PassingError(f"the KMS plugin {self.name} did not decrypt its key: {error}") from error
            self._seeds[encrypted] = seed
        return seed

    def _rotate(self, key_id: str, until: float) -> list[str]:
        """Seal with this key from now on; returns what keeps it from that."""
        current = self._current
        if current is not None and current.encrypted.key_id == key_id and self._now() <= current.until:
            self._current = current._replace(until=until)
            return []
        seed, uid, encrypted, why = os.urandom(_SEED), str(uuid.uuid4()), None, ""
        try:
            encrypted = self.plugin.encrypt(seed, uid)
            why = _fault(encrypted)
        except PluginError as error:
            why = f"failed to encrypt DEK, error: {error}"
        got = encrypted.key_id if encrypted is not None and not why else ""
        if encrypted is not None and got == key_id:
            self._seeds[encrypted] = seed
            self._current = _Seed(seed, encrypted, uid, until)
            return []
        kept = _hash(current.encrypted.key_id) if current else ""
        return [
            f'failed to rotate DEK uid="{uid}", useSeed=true, errState={self._state_fault()}, '
            f'errGen={why or "<nil>"}, statusKeyIDHash="{_hash(key_id)}", encryptKeyIDHash="{_hash(got)}", '
            f'stateKeyIDHash="{kept}", expirationTimestamp={_shown(current.until if current else None)}'
        ]

    def _state_fault(self) -> str:
        try:
            self.check()
        except NotSealedError as error:
            return str(error)
        return "<nil>"

    def _count(self, way: str, key_id: str) -> None:
        place = way, _hash(key_id)
        before = self.used.get(place)
        self.used[place] = Used(before.times + 1 if before else 1, self._now())


def _cipher(seed: bytes, info: bytes) -> AESGCM:
    return AESGCM(HKDFExpand(SHA256(), 32, info).derive(seed))


def _key_id_fault(key_id: str) -> str:
    if not key_id:
        return "keyID is empty"
    if (length := len(key_id.encode())) > LONGEST_KEY_ID:
        return f"keyID is {length} bytes, which exceeds the max size of {LONGEST_KEY_ID}"
    return ""


def _fault(encrypted: Encrypted) -> str:
    """What is wrong with an answer of Encrypt, or with what was stored of one."""
    length = len(encrypted.ciphertext)
    if not length:
        return "failed to validate encrypted DEK source: encrypted DEK source is empty"
    if length > LONGEST_CIPHERTEXT:
        why = f"{length} bytes, which exceeds the max size of {LONGEST_CIPHERTEXT}"
        return f"failed to validate encrypted DEK source: encrypted DEK source is {why}"
    if why := _key_id_fault(encrypted.key_id):
        return f"failed to validate key id: {why}"
    if why := _annotations_fault(encrypted):
        return f"failed to validate annotations: {why}"
    return ""


def _annotations_fault(encrypted: Encrypted) -> str:
    size, faults = 0, []
    for name, value in encrypted.annotations:
        size += len(name.encode()) + len(value)
        domain = name.removesuffix(".")
        told = [*names.dns1123_subdomain(domain)]
        if not told and "." not in domain:
            told = ["should be a domain with at least two segments separated by dots"]
        faults += [f'annotations: Invalid value: "{name}": {why}' for why in told]
    if size > LONGEST_ANNOTATIONS:
        faults.append(
            f"total size of annotations is {size}, which exceeds the max size of {LONGEST_ANNOTATIONS}"
        )
    return joined(faults)


def _hash(key_id: str) -> str:
    return f"sha256:{sha256(key_id.encode()).hexdigest()}" if key_id else ""


def _shown(seconds: float | None) -> str:
    if seconds is None:
        return "0001-01-01T00:00:00Z"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
