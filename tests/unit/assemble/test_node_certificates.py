"""Issue 13: a kubelet alone asks its cluster for its certificates, and renews them in time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.apiserver.request.response import Response
from podling.assemble import join
from podling.assemble.node_certificates import (
    RequestError,
    RotatedLogin,
    Rotation,
    Wanted,
    client_certificate,
    due,
    is_answered,
    issued,
    joined_certificate,
    kept,
    serving_certificate,
    shown_at_first,
)
from podling.client.client import Client
from podling.client.login import Shown
from podling.client.tls import Trust
from podling.controllers.certificates_rules import CertificateAuthority, issue
from podling.machine.pki import Authority
from podling.machine.start import StartError
from podling.model.codec.json import from_data
from podling.model.rules.certificates import NODES
from podling.model.types.certificates import CertificateSigningRequest
from podling.model.types.rbac import AUTHENTICATED, MASTERS, ClusterRoleBinding
from podling.process.tls import Lifetime
from podling.storage.memory import MemoryStorage

NODE = "system:node:n"
LIFE = timedelta(minutes=10)
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class HandClock:
    """Sleeping moves it, and ends the test after `naps`."""

    def __init__(self) -> None:
        self.time = datetime.now(UTC).replace(microsecond=0)
        self.slept: list[float] = []
        self.over = asyncio.Event()
        self.naps = 0

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) > self.naps:
            self.over.set()
            await asyncio.Event().wait()
        self.time += timedelta(seconds=seconds)


class Cluster:
    def __init__(self, server: ApiServer, clock: HandClock, authority: Authority) -> None:
        self._server = server
        self.clock = clock
        self.admin = self.client("admin", MASTERS)
        self.authority = authority
        pem = authority.ca.certificate.read_bytes(), authority.ca.key.read_bytes()
        self._signer = CertificateAuthority.of_pem(*pem, LIFE)
        self.answers: list[dict[str, object]] = []
        """What requests are answered, the last for all that follow: conditions, and a certificate if
        approved."""

    def client(self, user: str, *groups: str) -> Client:
        return Client(LocalTransport(self._server.handle, User(user, (*groups, AUTHENTICATED))))

    async def answer(self, version: str) -> None:
        """Decides about each request that comes after `version`."""
        seen: set[str] = set()
        async for events in self.admin.watch(CertificateSigningRequest, resource_version=version):
            for event in events:
                name = event.object.metadata.name
                if event.type != "ADDED" or name in seen:
                    continue
                seen.add(name)
                condition = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if condition["type"] == "Removed":
                    await self.admin.delete(CertificateSigningRequest, name)
                    continue
                where = "status" if condition["type"] == "Failed" else "approval"
                patch = {"status": {"conditions": [{"status": "True", **condition}]}}
                asked = await self.admin.patch(CertificateSigningRequest, name, "", patch, subresource=where)
                if condition["type"] == "Approved":
                    asked.status.certificate = issue(asked, self._signer, self.clock.now())
                    await self.admin.update(asked, subresource="status")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async def nowhere(*_: object) -> Response:
        raise NotImplementedError

    clock = HandClock()
    server = ApiServer.build(MemoryStorage(), KINDS, clock=clock, connector=nowhere)
    await server.start()
    await server.have_default_roles()
    yield Cluster(server, clock, Authority(tmp_path / "cluster", clock.now()))
    server.close()


async def rotated(cluster: Cluster, wanted: Wanted, naps: int) -> Sequence[float]:
    """Runs the rotation until it sleeps once more than `naps` times; how long it slept."""
    cluster.clock.naps = naps
    client = cluster.client(NODE, NODES)
    version = (await cluster.admin.list(CertificateSigningRequest)).resource_version
    rotation = Rotation(client, wanted, cluster.clock, lambda: 0.5, cluster.clock.sleep)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(cluster.answer(version)), tasks.create_task(rotation.run())]
        await cluster.clock.over.wait()
        for task in running:
            task.cancel()
    return cluster.clock.slept


APPROVED: dict[str, object] = {"type": "Approved", "reason": "AutoApproved", "message": "m"}


async def test_a_client_certificate_is_asked_for_at_once_and_renewed_before_it_ends(
    cluster: Cluster, tmp_path: Path
) -> None:
    """As the node itself, which RBAC lets ask; key and certificate are their owner's alone."""
    wanted, cluster.answers = client_certificate(tmp_path, "n"), [APPROVED]
    began = cluster.clock.now()
    # 80 % of 15 minutes, 5 of which are over when it is issued.
    assert await rotated(cluster, wanted, 4) == [1.0, 419.0, 1.0, 419.0, 1.0]
    asked = (await cluster.admin.list(CertificateSigningRequest)).items
    assert len(asked) == 3
    spec = asked[0].spec
    assert spec.usages == ["digital signature", "client auth"]
    assert (spec.signer_name, spec.username, spec.expiration_seconds) == (
        "kubernetes.io/kube-apiserver-client-kubelet",
        NODE,
        None,
    )
    assert asked[0].metadata.generate_name == "csr-"
    lifetime = kept(wanted)
    assert lifetime is not None and lifetime.ends == began + timedelta(seconds=840) + LIFE
    assert wanted.file.stat().st_mode & 0o777 == 0o600
    assert wanted.file.name == "kubelet-client-current.pem"


async def test_a_server_s_certificate_has_its_names(cluster: Cluster, tmp_path: Path) -> None:
    wanted, cluster.answers = serving_certificate(tmp_path, "n", ["n", "192.0.2.1"]), [APPROVED]
    now = cluster.clock.now()
    made = Authority(tmp_path / "own", now).server("kubelet", NODE, ["n", "192.0.2.1"])
    shown = shown_at_first(wanted, made, now)
    assert shown.certificate.read_bytes() == made.certificate.read_bytes() + made.key.read_bytes()
    assert kept(wanted) is None, "its own authority's is not what is wanted"
    await rotated(cluster, wanted, 0)
    assert kept(wanted) is not None
    assert shown_at_first(wanted, made, now) == shown
    certificate = x509.load_pem_x509_certificate(shown.certificate.read_bytes())
    assert certificate.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "podling-ca"
    (one,) = (await cluster.admin.list(CertificateSigningRequest)).items
    assert one.spec.signer_name == "kubernetes.io/kubelet-serving"
    assert kept(serving_certificate(tmp_path, "n", ["n", "192.0.2.2"])) is None, "at another address"
    assert kept(serving_certificate(tmp_path, "m", ["n", "192.0.2.1"])) is None, "of another node"


async def identified(cluster: Cluster, wanted: Wanted) -> None:
    version = (await cluster.admin.list(CertificateSigningRequest)).resource_version
    async with asyncio.TaskGroup() as tasks:
        answering = tasks.create_task(cluster.answer(version))
        await join.identify(cluster.client(NODE, NODES), wanted, cluster.clock.now())
        answering.cancel()


async def test_a_node_has_a_certificate_for_its_network(cluster: Cluster, tmp_path: Path) -> None:
    """Which it keeps, and asks for again once it has ended."""
    wanted, cluster.answers = joined_certificate(tmp_path, "n"), [APPROVED]
    await identified(cluster, wanted)
    await identified(cluster, wanted)
    (asked,) = (await cluster.admin.list(CertificateSigningRequest)).items
    assert (asked.spec.signer_name, asked.spec.username) == ("kubernetes.io/kube-apiserver-client", NODE)
    certificate = x509.load_pem_x509_certificate(wanted.file.read_bytes())
    assert certificate.subject.rfc4514_string() == "CN=podling:node:n,O=podling:nodes"
    cluster.clock.time += 2 * LIFE
    await identified(cluster, wanted)
    assert len((await cluster.admin.list(CertificateSigningRequest)).items) == 2


async def test_where_nodes_may_read_for_their_network_none_is_needed(
    cluster: Cluster, tmp_path: Path
) -> None:
    """As where an administrator, or an earlier version, lets all nodes."""
    subject = {"kind": "Group", "name": NODES, "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"kind": "ClusterRole", "name": "podling:nodes", "apiGroup": "rbac.authorization.k8s.io"}
    bound = {"metadata": {"name": "b"}, "subjects": [subject], "roleRef": ref}
    await cluster.admin.create(from_data(bound, ClusterRoleBinding))
    await identified(cluster, joined_certificate(tmp_path, "n"))
    assert not (await cluster.admin.list(CertificateSigningRequest)).items


async def test_a_node_whose_network_gets_no_certificate_does_not_start(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join, "APPROVED_WITHIN", 0.01)
    node, now = cluster.client(NODE, NODES), cluster.clock.now()
    with pytest.raises(StartError, match="nobody has approved the certificate of this node's network"):
        await join.identify(node, joined_certificate(tmp_path, "n"), now)
    monkeypatch.undo()
    cluster.answers = [{"type": "Denied", "reason": "No", "message": "never"}]
    with pytest.raises(BaseExceptionGroup) as raised:
        await identified(cluster, joined_certificate(tmp_path, "n"))
    assert "is denied, reason: No, message: never" in str(raised.value.exceptions[0])


async def test_while_no_server_answers_a_node_goes_on_as_before(tmp_path: Path) -> None:
    async def nobody(*_: object) -> Response:
        raise ConnectionRefusedError

    client = Client(LocalTransport(nobody, User(NODE, (NODES,))))
    await join.identify(client, joined_certificate(tmp_path, "n"), datetime.now(UTC))


@pytest.mark.parametrize(
    "refusal",
    [
        {"type": "Denied", "reason": "No", "message": "never"},
        {"type": "Failed", "reason": "No", "message": "never"},
        {"type": "Removed"},
    ],
)
async def test_who_is_refused_asks_again_later(
    cluster: Cluster, tmp_path: Path, refusal: dict[str, object]
) -> None:
    wanted, cluster.answers = client_certificate(tmp_path, "n"), [refusal, refusal, APPROVED]
    assert await rotated(cluster, wanted, 2) == [2.0, 4.0, 1.0]
    assert kept(wanted) is not None


def answered(**status: object) -> CertificateSigningRequest:
    body = {"metadata": {"name": "r", "uid": "u"}, "status": status}
    return from_data(body, CertificateSigningRequest)


def condition(type_: str) -> list[dict[str, str]]:
    return [{"type": type_, "status": "True", "reason": "R", "message": "m"}]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "the request was removed"),
        (from_data({"metadata": {"name": "r", "uid": "w"}}, CertificateSigningRequest), "was removed"),
        (answered(conditions=condition("Denied")), "r is denied, reason: R, message: m"),
        (answered(conditions=condition("Failed")), "r is failed, reason: R, message: m"),
    ],
)
def test_why_a_request_was_not_granted(found: CertificateSigningRequest | None, said: str) -> None:
    assert is_answered("u", found)
    with pytest.raises(RequestError, match=said):
        issued("u", found)


def test_a_request_waits_for_approval_and_certificate() -> None:
    assert not is_answered("u", answered())
    assert not is_answered("u", answered(conditions=condition("Approved")))
    assert not is_answered("u", answered(certificate="eA=="))
    granted = answered(conditions=condition("Approved"), certificate="eA==")
    assert is_answered("u", granted)
    assert issued("u", granted) == b"x"


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 70), (0.5, 80), (1.0, 90)])
def test_when_another_is_due(chance: float, seconds: int) -> None:
    begins = datetime(2026, 1, 2, tzinfo=UTC)
    lifetime = Lifetime(begins, begins + timedelta(seconds=100))
    assert due(lifetime, chance) == begins + timedelta(seconds=seconds)


@pytest.mark.parametrize("content", [b"", b"no certificate", b"\xff"])
def test_what_is_damaged_is_asked_for_again(tmp_path: Path, content: bytes) -> None:
    wanted = client_certificate(tmp_path, "n")
    wanted.file.write_bytes(content)
    assert kept(wanted) is None


class Given:
    """What a kubeconfig says."""

    async def present(self) -> Shown:
        return Shown("Bearer given", TLS)

    async def renew(self, refused: Shown) -> Shown | None:
        return None


@pytest.fixture
def keep(tmp_path: Path) -> Callable[[Wanted, datetime], None]:
    def kept_of(wanted: Wanted, now: datetime) -> None:
        directory = tmp_path / f"authority {now:%H %M}"
        pair = Authority(directory, now).client("n", NODE, [NODES])
        wanted.file.write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())

    return kept_of


async def test_a_kubelet_shows_its_own_certificate_in_its_time(
    tmp_path: Path, keep: Callable[[Wanted, datetime], None]
) -> None:
    """It is found when it is there, and followed when it is replaced; without one the kubeconfig counts."""
    clock, wanted = HandClock(), client_certificate(tmp_path, "n")
    login = RotatedLogin(wanted, Trust(insecure=True), Given(), clock)
    assert (await login.present()).authorization == "Bearer given"
    keep(wanted, clock.now())
    own = await login.present()
    assert own.authorization == "" and own.tls is not TLS
    assert await login.present() == own
    keep(wanted, clock.now() + timedelta(minutes=1))
    assert (await login.present()).tls is not own.tls
    clock.time += timedelta(days=400)
    assert (await login.present()).authorization == "Bearer given"


async def test_a_cluster_that_does_not_know_it_any_more_is_shown_the_kubeconfig_s(
    tmp_path: Path, keep: Callable[[Wanted, datetime], None]
) -> None:
    clock, wanted = HandClock(), client_certificate(tmp_path, "n")
    keep(wanted, clock.now())
    login = RotatedLogin(wanted, Trust(insecure=True), Given(), clock)
    given = await login.renew(await login.present())
    assert given == Shown("Bearer given", TLS)
    wanted.file.unlink()
    assert await login.renew(given) is None
