"""NetworkPolicy v1 as its specification reads, for comparison: whether a packet may go from one address to
another. Nothing of podling's own reading is used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

import msgspec

Labels = Mapping[str, str]


class OraclePod(msgspec.Struct, frozen=True):
    """`ports`: (name, protocol, number)."""

    namespace: str
    name: str
    address: str
    labels: Labels
    ports: tuple[tuple[str, str, int], ...] = ()
    is_local: bool = True


class World(msgspec.Struct):
    """Namespaces by name with their labels; pods; policies as they are sent."""

    namespaces: dict[str, Labels]
    pods: dict[tuple[str, str], OraclePod]
    policies: dict[tuple[str, str], dict[str, Any]]

    def allows(self, source: str, destination: str, protocol: str, port: int) -> bool:
        if source == destination:
            return True
        of = {pod.address: pod for pod in self.pods.values()}
        asked = protocol, port
        return self._lets("Egress", source, destination, of, asked) and self._lets(
            "Ingress", destination, source, of, asked
        )

    def _lets(
        self,
        direction: str,
        subject: str,
        peer: str,
        of: Mapping[str, OraclePod],
        asked: tuple[str, int],
    ) -> bool:
        pod = of.get(subject)
        if pod is None or not pod.is_local:
            return True
        limiting = [
            policy["spec"]
            for (namespace, _), policy in self.policies.items()
            if namespace == pod.namespace
            and selects(policy["spec"]["podSelector"], pod.labels)
            and direction in policy_types(policy["spec"])
        ]
        destination = of.get(peer if direction == "Egress" else subject)
        return not limiting or any(
            self._is_peer(rule.get("to" if direction == "Egress" else "from", []), pod.namespace, peer, of)
            and _is_port(rule.get("ports", []), destination, *asked)
            for spec in limiting
            for rule in spec.get(direction.lower(), [])
        )

    def _is_peer(
        self, peers: Sequence[Any], namespace: str, address: str, of: Mapping[str, OraclePod]
    ) -> bool:
        return not peers or any(self._matches(peer, namespace, address, of) for peer in peers)

    def _matches(self, peer: Any, namespace: str, address: str, of: Mapping[str, OraclePod]) -> bool:
        if block := peer.get("ipBlock"):
            number = ip_address(address)
            return number in ip_network(block["cidr"]) and not any(
                number in ip_network(out) for out in block.get("except", [])
            )
        pod = of.get(address)
        if pod is None:
            return False
        if (wanted := peer.get("namespaceSelector")) is None:
            if pod.namespace != namespace:
                return False
        elif pod.namespace not in self.namespaces or not selects(wanted, self.namespaces[pod.namespace]):
            return False
        return selects(peer.get("podSelector", {}), pod.labels)


def policy_types(spec: Any) -> Sequence[str]:
    types: Sequence[str] = spec.get("policyTypes", [])
    return types or (["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])


def selects(selector: Any, labels: Labels) -> bool:
    holds: Iterable[bool] = (
        {
            "In": lambda value, values: value in values,
            "NotIn": lambda value, values: value not in values,
            "Exists": lambda value, values: value is not None,
            "DoesNotExist": lambda value, values: value is None,
        }[each["operator"]](labels.get(each["key"]), each.get("values", []))
        for each in selector.get("matchExpressions", [])
    )
    return all(holds) and all(
        labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()
    )


def _is_port(ports: Sequence[Any], destination: OraclePod | None, protocol: str, number: int) -> bool:
    def fits(port: Any) -> bool:
        if port.get("protocol", "TCP").lower() != protocol:
            return False
        wanted = port.get("port")
        if wanted is None:
            return True
        if isinstance(wanted, str):
            named = destination.ports if destination else ()
            return (wanted, protocol, number) in named
        return bool(wanted <= number <= port.get("endPort", wanted))

    return not ports or any(map(fits, ports))
