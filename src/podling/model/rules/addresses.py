"""The cluster IPs of services, as API server and controllers must see them alike: which ranges they come
from, and the IPAddress that stands for each.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from podling.model.types.meta import ObjectMeta
from podling.model.types.networking import IPAddress, IPAddressSpec, ParentReference, ServiceCIDR
from podling.model.types.service import Service

FAMILY, MANAGED_BY = "ipaddress.kubernetes.io/ip-family", "ipaddress.kubernetes.io/managed-by"
ALLOCATOR = "ipallocator.k8s.io"
READY = "Ready"
NONE = "None"


def family(address: str) -> str:
    """Of an address or a subnet."""
    return "IPv6" if ":" in address else "IPv4"


def is_in_use(one: ServiceCIDR) -> bool:
    """Whether services get addresses of the range: not once it is being deleted. One of which nobody has said
    whether it is ready is taken to be, as by Kubernetes."""
    states = [condition.status for condition in one.status.conditions if condition.type == READY]
    return not one.metadata.deletion_timestamp and states in ([], ["True"])


def subnets(ranges: str) -> list[str]:
    """Those of `--service-cluster-ip-range`, one for each family, the usual one first."""
    return ranges.split(",")


def first_address(ranges: str) -> str:
    """The address of the service `kubernetes`, if services get theirs from these subnets."""
    return str(ip_network(subnets(ranges)[0])[1])


def cluster_ips(service: Service) -> list[str]:
    return [address for address in service.spec.cluster_ips if address and address != NONE]


def address_of(service: Service, address: str) -> IPAddress:
    """The IPAddress of one of a service's addresses, without what the API server adds."""
    meta = service.metadata
    return IPAddress(
        metadata=ObjectMeta(name=address, labels={FAMILY: family(address), MANAGED_BY: ALLOCATOR}),
        spec=IPAddressSpec(
            parent_ref=ParentReference(resource="services", namespace=meta.namespace, name=meta.name)
        ),
    )


def address_and_port(text: str, default: int) -> tuple[str, int]:
    """Of `ADDRESS` or `ADDRESS:PORT`; an IPv6 address has brackets before a port. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):
        host, port = text, f"{default}"
    try:
        address, number = ip_address(host.removeprefix("[").removesuffix("]")), int(port)
    except ValueError:
        raise ValueError(f"{text!r} is no ADDRESS or ADDRESS:PORT") from None
    if not 0 < number < 1 << 16:
        raise ValueError(f"{text!r} has no port from 1 to 65535")
    return str(address), number
