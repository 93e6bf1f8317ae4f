"""The certificates that a node asks its cluster for: the one its kubelet shows API servers, that of the
kubelet's server, and the one by which a node of podling looks after its network (docs/decisions/108).

As by Kubernetes' kubelet each is asked for by a CertificateSigningRequest, kept with its key in one file, and
asked for again when between 70 and 90 % of its time are over. Who uses it follows the file.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.login import Login, Shown
from podling.client.tls import Pair, Trust, client_tls
from podling.machine.pki import KeyPair, Sleep, general_name, until, write_whole
from podling.model.errors import StatusError
from podling.model.rules.certificates import (
    APPROVED,
    CLIENT_SIGNER,
    DENIED,
    FAILED,
    JOINED_NODE,
    JOINED_NODES,
    KUBELET_CLIENT_SIGNER,
    KUBELET_SERVING_SIGNER,
    NODE,
    NODES,
    attributes_of,
    conditions_of,
)
from podling.model.time import Clock
from podling.model.types.certificates import CertificateSigningRequest, CertificateSigningRequestSpec
from podling.model.types.meta import ObjectMeta
from podling.process.tls import Lifetime, Reread
from podling.process.waits import Backoff

ISSUED_WITHIN = 900.0
"""Seconds that a request waits for its certificate; then another is made."""
RETRY = Backoff(2.0, 32.0)
PAUSE = 1.0
EARLIEST, SPREAD = 0.7, 0.2
"""When another is asked for, as parts of a certificate's time, so that nodes do not ask all at once."""

log = logging.getLogger(__name__)


class RequestError(ValueError):
    """A request was not granted; says why."""


class Wanted(msgspec.Struct, frozen=True):
    """A certificate of the user `name` of `group` for `usage`, by `signer`, and where it is kept with its
    key; a server's is for `hosts`, addresses or names."""

    file: Path
    name: str
    group: str
    signer: str
    usage: str
    hosts: Sequence[str] = ()

    @property
    def subject(self) -> x509.Name:
        group = x509.NameAttribute(NameOID.ORGANIZATION_NAME, self.group)
        return x509.Name([group, x509.NameAttribute(NameOID.COMMON_NAME, self.name)])


def client_certificate(directory: Path, node: str) -> Wanted:
    file = directory / "kubelet-client-current.pem"
    return Wanted(file, f"{NODE}{node}", NODES, KUBELET_CLIENT_SIGNER, "client auth")


def joined_certificate(directory: Path, node: str) -> Wanted:
    """For what the machine of a node does beside its kubelet."""
    file = directory / "joined-node-current.pem"
    return Wanted(file, f"{JOINED_NODE}{node}", JOINED_NODES, CLIENT_SIGNER, "client auth")


def node_of(directory: Path) -> str:
    """The node whose client certificate is kept; empty if there is none."""
    try:
        pem = client_certificate(directory, "").file.read_bytes()
        names = attributes_of(x509.load_pem_x509_certificate(pem).subject, NameOID.COMMON_NAME)
    except (OSError, ValueError):
        return ""
    return "".join(names).removeprefix(NODE)


def serving_certificate(directory: Path, node: str, hosts: Sequence[str]) -> Wanted:
    file = directory / "kubelet-server-current.pem"
    return Wanted(file, f"{NODE}{node}", NODES, KUBELET_SERVING_SIGNER, "server auth", hosts)


def kept(wanted: Wanted) -> Lifetime | None:
    """The time of the certificate that is kept; None if there is none, or not such a one."""
    try:
        pem = wanted.file.read_bytes()
        certificate = x509.load_pem_x509_certificate(pem)
        key = serialization.load_pem_private_key(pem, None)
        names = certificate.subject
        found = [attributes_of(names, kind) for kind in (NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME)]
        is_ours = key.public_key() == certificate.public_key() and found == [
            attributes_of(wanted.subject, kind) for kind in (NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME)
        ]
        if not is_ours or not {*map(general_name, wanted.hosts)} <= {*names_in(certificate)}:
            return None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        log.warning("%s cannot be used, another is asked for: %s", wanted.file, error)
        return None
    return Lifetime(certificate.not_valid_before_utc, certificate.not_valid_after_utc)


def names_in(certificate: x509.Certificate) -> Sequence[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return ()


def due(lifetime: Lifetime, chance: float) -> datetime:
    """When another is asked for; `chance` is from 0 to 1."""
    return lifetime.begins + (lifetime.ends - lifetime.begins) * (EARLIEST + SPREAD * chance)


def pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    form, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, plain)


def request(wanted: Wanted, key: ec.EllipticCurvePrivateKey) -> CertificateSigningRequest:
    builder = x509.CertificateSigningRequestBuilder().subject_name(wanted.subject)
    if wanted.hosts:
        names = x509.SubjectAlternativeName(map(general_name, wanted.hosts))
        builder = builder.add_extension(names, critical=False)
    spec = CertificateSigningRequestSpec(
        request=builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        signer_name=wanted.signer,
        usages=["digital signature", wanted.usage],
    )
    return CertificateSigningRequest(metadata=ObjectMeta(generate_name="csr-"), spec=spec)


def is_answered(uid: str, found: CertificateSigningRequest | None) -> bool:
    if found is None or found.metadata.uid != uid:
        return True
    refusals = (*conditions_of(found.status, DENIED), *conditions_of(found.status, FAILED))
    is_approved = bool(conditions_of(found.status, APPROVED))
    return bool(refusals) or (is_approved and bool(found.status.certificate))


def issued(uid: str, found: CertificateSigningRequest | None) -> bytes:
    """The certificate of a request that is answered. Raises RequestError."""
    if found is None or found.metadata.uid != uid:
        raise RequestError("the request was removed")
    for type_ in (DENIED, FAILED):
        for condition in conditions_of(found.status, type_):
            why = f"reason: {condition.reason}, message: {condition.message}"
            raise RequestError(f"the request {found.metadata.name} is {type_.lower()}, {why}")
    return found.status.certificate


class Rotation:
    """Keeps one certificate up to date; `chance` is from 0 to 1. To be run as a task."""

    def __init__(
        self,
        client: Client,
        wanted: Wanted,
        clock: Clock,
        chance: Callable[[], float] = random.random,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._client, self._wanted, self._clock = client, wanted, clock
        self._chance, self._sleep = chance, sleep

    async def run(self) -> None:
        retries = RETRY.begin()
        while True:
            if (lifetime := kept(self._wanted)) is not None:
                await until(due(lifetime, self._chance()), self._clock, self._sleep)
            while not await self._has_renewed():
                await self._sleep(retries.next())
            retries.reset()
            # A certificate for seconds is due again at once.
            await self._sleep(PAUSE)

    async def _has_renewed(self) -> bool:
        try:
            await obtain(self._client, self._wanted)
        except (StatusError, OSError, RequestError) as error:
            log.warning("no certificate for %s: %s", self._wanted.file, error)
            return False
        log.info("%s has been renewed", self._wanted.file)
        return True


async def obtain(client: Client, wanted: Wanted) -> None:
    """Ask for a certificate, and keep it. Raises StatusError, OSError or RequestError."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = await _certificate(client, wanted, key)
    write_whole(wanted.file, certificate.rstrip() + b"\n" + pem_of(key), 0o600, durable=True)
    if kept(wanted) is None:
        raise RequestError("what was issued is not what was asked for")


async def _certificate(client: Client, wanted: Wanted, key: ec.EllipticCurvePrivateKey) -> bytes:
    """Raises StatusError, OSError or RequestError."""
    asked = (await client.create(request(wanted, key))).metadata
    requests = Informer(client, CertificateSigningRequest, field_selector=f"metadata.name={asked.name}")
    changed = asyncio.Event()
    requests.subscribe(lambda old, new: changed.set())
    async with asyncio.timeout(ISSUED_WITHIN), asyncio.TaskGroup() as tasks:
        following = tasks.create_task(requests.run())
        await requests.wait_synced()
        while not is_answered(asked.uid, requests.get("", asked.name)):
            changed.clear()
            await changed.wait()
        following.cancel()
    return issued(asked.uid, requests.get("", asked.name))


class _Own(msgspec.Struct, frozen=True):
    tls: Reread[ssl.SSLContext]
    lifetime: Lifetime


class RotatedLogin:
    """Implements `podling.client.login.Login`: by the certificate that is kept, in its time, else as
    `given`."""

    def __init__(self, wanted: Wanted, trust: Trust, given: Login, clock: Clock) -> None:
        self._wanted, self._trust, self._given, self._clock = wanted, trust, given, clock
        self._own = Reread([wanted.file], self._read)

    async def present(self) -> Shown:
        own = self._own.get()
        if own is None or not own.lifetime.has(self._clock.now()):
            return await self._given.present()
        return Shown("", own.tls.get())

    async def renew(self, refused: Shown) -> Shown | None:
        shown = await self.present()
        if shown != refused:
            return shown
        own = self._own.get()
        # A cluster whose authority is another now may know what the kubeconfig was given.
        is_own = own is not None and own.tls.get() is refused.tls
        return await self._given.present() if is_own else await self._given.renew(refused)

    def _read(self) -> _Own | None:
        lifetime = kept(self._wanted)
        if lifetime is None:
            return None
        file = self._wanted.file
        return _Own(client_tls(self._trust, Pair(file, file)), lifetime)


def shown_at_first(wanted: Wanted, made: KeyPair, now: datetime) -> KeyPair:
    """What a server shows, in one file: what is kept in its time, or what it has `made` itself, until another
    has been issued."""
    lifetime = kept(wanted)
    if lifetime is None or not lifetime.has(now):
        pem = made.certificate.read_bytes() + made.key.read_bytes()
        write_whole(wanted.file, pem, 0o600)
    return KeyPair(wanted.file, wanted.file)
