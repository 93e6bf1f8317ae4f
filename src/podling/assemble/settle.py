"""What a start knows before parts are built: the options of the audit log, the port of the API server, the
pods' subnet and the range of the services' addresses.

It imports little of podling and has all that containerd's start needs, because containerd starts while the
other parts are imported (`up.py`).
"""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import msgspec

from podling.machine import doctor
from podling.machine.instance import LAYOUT_VERSION, Choices, Instance, LayoutError, routed
from podling.machine.start import StartError

LOOPBACK = "127.0.0.1"
KUBELET_PORT = 10250
RANGE_OF_OLD = "10.96.0.0/16"
"""The range of a data directory that an older podling made and keeps none."""
LONGEST_PREFIX = 30
"""Of a longer one, the first and the last address are all there is."""


class AuditOptions(msgspec.Struct, frozen=True):
    """The options of the audit log: kube-apiserver's, in its units; 0 for any limit means none."""

    path: str = ""
    """A file, `-` for standard output, `off` for no log; `audit.log` of the data directory when empty."""
    max_age_days: int = 366
    max_backups: int = 100
    max_size_mib: int = 100


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


def choose_range(instance: Instance, port: int, wanted: str = "") -> str:
    """The subnet of the services' addresses: `wanted`, if given, else that of the last start, which stays
    even if it is not free any more, because services have its addresses. It is kept for the next start.
    Raises StartError."""
    try:
        before = instance.choices()
        kept = before.service_range if before else ""
        if not kept and instance.database.exists():
            kept = RANGE_OF_OLD
        if wanted:
            network = IPv4Network(wanted, strict=False)
            if network.prefixlen > LONGEST_PREFIX:
                raise ValueError(f"it has no address for a service: at most /{LONGEST_PREFIX} has one")
            chosen = str(network)
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
