"""What a start knows before parts are built: the options of audit log, authentication and admission, the
port of the API server, the pods' subnet and the range of the services' addresses.

It imports little of podling and has all that containerd's start needs, because containerd starts while the
other parts are imported (`up.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path

import msgspec

from podling.machine import doctor
from podling.machine.instance import LAYOUT_VERSION, Choices, Instance, LayoutError, routed
from podling.machine.start import StartError
from podling.model.rules.admission_plugins import DEFAULT_PLUGINS
from podling.model.rules.authorization_modes import DEFAULT_MODES

LOOPBACK = "127.0.0.1"
KUBELET_PORT = 10250
RANGE_OF_OLD = "10.96.0.0/16"
"""The range of a data directory that an older podling made and keeps none."""
FEWEST_BITS, MOST_BITS = 2, 64
"""Of a host in a subnet of services: with fewer, the first and the last address are all there is. The most is
of IPv6, as in Kubernetes."""


class AuditOptions(msgspec.Struct, frozen=True):
    """The options of the audit log: kube-apiserver's, in its units; 0 for any limit means none."""

    path: str = ""
    """A file, `-` for standard output, `off` for no log; `audit.log` of the data directory when empty."""
    max_age_days: int = 366
    max_backups: int = 100
    max_size_mib: int = 100
    policy: Path | None = None
    """A file; podling's own policy without one."""
    webhook: Path | None = None
    """A kubeconfig that says where events are sent, too; nowhere without one."""
    webhook_mode: str = "batch"
    webhook_buffer_size: int = 10_000
    webhook_max_size: int = 400
    webhook_max_wait: float = 30.0
    webhook_initial_backoff: float = 10.0
    """Seconds."""
    webhook_throttles: bool = True
    webhook_qps: float = 10.0
    """Batches a second."""
    webhook_burst: int = 15
    webhook_truncates: bool = False
    webhook_longest_batch: int = 10_485_760
    """Bytes."""
    webhook_longest_event: int = 102_400
    truncates: bool = False
    longest_batch: int = 10_485_760
    """The file has no batches: it is held to what Kubernetes holds it to, and does nothing."""
    longest_event: int = 102_400
    mode: str | None = None
    """One of Kubernetes'; without one lines are gathered for a moment, and none is lost."""
    buffer_size: int = 10_000
    max_size: int = 1
    max_wait: float = 0.0
    throttles: bool = False
    qps: float = 0.0
    burst: int = 0
    compress: bool = False
    """Whether rotated logs are compressed."""


class AuthenticationOptions(msgspec.Struct, frozen=True):
    """The options of authentication: kube-apiserver's. `proxy_…` are those that begin with
    `--requestheader-`."""

    token_file: Path | None = None
    anonymous: bool | None = None
    """Whether strangers are let in; they are if nothing is said."""
    config_file: Path | None = None
    """An AuthenticationConfiguration."""
    proxy_ca: Path | None = None
    proxy_names: tuple[str, ...] = ()
    proxy_users: tuple[str, ...] = ()
    proxy_uids: tuple[str, ...] = ()
    proxy_groups: tuple[str, ...] = ()
    proxy_extra_prefixes: tuple[str, ...] = ()
    oidc_issuer: str = ""
    oidc_client: str = ""
    oidc_ca: Path | None = None
    oidc_username: str = "sub"
    oidc_username_prefix: str = ""
    oidc_groups: str = ""
    oidc_groups_prefix: str = ""
    oidc_algorithms: tuple[str, ...] = ("RS256",)
    oidc_required: tuple[tuple[str, str], ...] = ()
    """Claims and their values."""
    token_webhook: Path | None = None
    """A kubeconfig of the server that knows the owners of other tokens."""
    token_webhook_ttl: float = 120.0
    """Seconds."""
    token_webhook_version: str = "v1beta1"

    @property
    def names_issuer(self) -> bool:
        """Whether one of `--oidc-…` is given."""
        texts = (self.oidc_issuer, self.oidc_client, self.oidc_username_prefix, self.oidc_groups)
        return any(texts) or self.oidc_ca is not None or bool(self.oidc_required)


class AuthorizationOptions(msgspec.Struct, frozen=True):
    """The options of authorization: kube-apiserver's."""

    modes: tuple[str, ...] = DEFAULT_MODES
    steps_file: Path | None = None
    """An AuthorizationConfiguration, in place of all others."""
    access_webhook: Path | None = None
    """A kubeconfig of the server that the mode Webhook asks."""
    access_webhook_version: str = "v1beta1"
    allowed_ttl: float = 300.0
    other_ttl: float = 30.0
    """Seconds."""


class InFlightOptions(msgspec.Struct, frozen=True):
    """How many requests are answered at a time: kube-apiserver's options."""

    reads: int = 400
    writes: int = 200
    is_fair: bool = True
    """Whether all share them by FlowSchema and priority level, or reads and writes have theirs each, and 0 is
    no limit."""


class EncryptionOptions(msgspec.Struct, frozen=True):
    """`keys`: an EncryptionConfiguration. `reloads`: whether its changes count at once."""

    keys: Path | None = None
    reloads: bool = False


class EtcdOptions(msgspec.Struct, frozen=True):
    """URLs of the members of the etcd that objects are kept in; the data directory keeps them if there are
    none. `ca`: whose certificates members show. `certificate` and `key`: what is shown to them."""

    servers: tuple[str, ...] = ()
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


class ElsewhereOptions(msgspec.Struct, frozen=True):
    """How cluster DNS answers names outside the cluster: the servers of domains and of all other names, for
    which the machine's are asked without any, and whether it walks the search paths of pods."""

    stubs: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    servers: Sequence[str] = ()
    autopath: bool = False


class ServingOptions(msgspec.Struct, frozen=True):
    """What the API server shows its clients: a certificate in place of the one that is made, and others for
    those who call it by certain names, by those of the certificate if none are given; each with its key.
    `client_ca`: whose clients are believed besides those of the data directory. `proxy_client`: what API
    servers behind it are shown, in place of what is made. `oldest` and `suites`: which TLS it speaks, in
    kube-apiserver's words; its usual if empty."""

    shown: tuple[Path, Path] | None = None
    by_name: Sequence[tuple[Path, Path, Sequence[str]]] = ()
    client_ca: Path | None = None
    proxy_client: tuple[Path, Path] | None = None
    oldest: str = ""
    suites: Sequence[str] = ()


class AdmissionOptions(msgspec.Struct, frozen=True):
    """`plugins`: those that are on. `file`: an AdmissionConfiguration."""

    plugins: frozenset[str] = DEFAULT_PLUGINS
    file: Path | None = None


def check_port(port: int) -> None:
    """Raises StartError when something listens there."""
    finding = doctor.port("API server", port)
    if finding.verdict is doctor.Verdict.FAILED:
        raise StartError(f"port {port} is in use: {finding.remedy}")


def choose(instance: Instance, port: int, subnet: str = "") -> Choices:
    """The pods' subnet: that of the last start if it is free. It is kept with `port` for the next start.
    `subnet`, if given, is the one to use. Raises StartError."""
    try:
        before = instance.choices()
        routes = Path("/proc/net/route").read_text()
        chosen = instance.claim_subnet(
            subnet or (before.subnet if before else "") or None,
            lambda candidate: routed(candidate, routes, instance.bridge),
        )
    except (LayoutError, OSError) as error:
        raise StartError(str(error)) from error
    if subnet and chosen != subnet:
        raise StartError(f"pods cannot have the subnet {subnet}: it is in use on this machine")
    choices = Choices(LAYOUT_VERSION, port, chosen, before.service_range if before else "")
    if choices != before:
        instance.keep(choices)
    return choices


def _ranges(wanted: str) -> str:
    """Raises ValueError."""
    networks = [ip_network(one, strict=False) for one in wanted.split(",")]
    for network in networks:
        if (spare := network.max_prefixlen - network.prefixlen) < FEWEST_BITS:
            longest = network.max_prefixlen - FEWEST_BITS
            raise ValueError(f"it has no address for a service: at most /{longest} has one")
        if network.version == 6 and spare > MOST_BITS:
            raise ValueError(f"{network} is too large: /{network.max_prefixlen - MOST_BITS} is the largest")
    versions = [network.version for network in networks]
    if versions not in ([4], [4, 6]):
        raise ValueError("it must be a subnet of IPv4, or one of IPv4 and one of IPv6")
    return ",".join(map(str, networks))


def _check_routes(ranges: str) -> None:
    """Raises ValueError."""
    routes = Path("/proc/net/route").read_text()
    for one in ranges.split(","):
        if ip_network(one).version == 4 and routed(one, routes, "", or_equal=False):
            raise ValueError(f"{one} is routed on this machine: what is there could not be reached any more")


def choose_range(instance: Instance, port: int, wanted: str = "") -> str:
    """The subnet of the services' addresses, or two, of both families, with a comma between them: `wanted`,
    if given, else that of the last start, which stays even if it is not free any more, because services have
    its addresses. It is kept for the next start. Raises StartError."""
    try:
        before = instance.choices()
        kept = before.service_range if before else ""
        if not kept and instance.database.exists():
            kept = RANGE_OF_OLD
        if wanted:
            chosen = _ranges(wanted)
            if chosen != kept:
                _check_routes(chosen)
            instance.claim_range(chosen, lambda _: False)
        else:
            routes = Path("/proc/net/route").read_text()
            chosen = instance.claim_range(
                kept or None, lambda candidate: routed(candidate, routes, instance.bridge)
            )
    except ValueError as error:
        raise StartError(f"--service-cluster-ip-range={wanted}: {error}") from error
    except (LayoutError, OSError) as error:
        raise StartError(str(error)) from error
    choices = Choices(LAYOUT_VERSION, port, before.subnet if before else "", chosen)
    if choices != before:
        instance.keep(choices)
    return chosen


def port_before(instance: Instance) -> int | None:
    """The port of the last start. Raises StartError."""
    try:
        before = instance.choices()
    except LayoutError as error:
        raise StartError(str(error)) from error
    return before.port if before else None
