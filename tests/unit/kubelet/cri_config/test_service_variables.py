"""The variables of services, as a kubelet of Kubernetes sets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.kubelet.cri_config.environment import LinkedService, ServiceAddress, service_variables
from podling.model.codec import json
from podling.model.types.meta import ObjectMeta
from podling.model.types.service import Service, ServicePort, ServiceSpec

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene


def service(name: str, address: str = "10.0.0.9", *ports: ServicePort, namespace: str = "ns") -> Service:
    listed = list(ports) or [ServicePort(protocol="TCP", port=80)]
    spec = ServiceSpec(cluster_ip=address, ports=listed)
    return Service(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


API = service(
    "kubernetes",
    "10.96.0.1",
    ServicePort(name="https", protocol="TCP", port=443),
    namespace="default",
)
OF_API = {
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    "KUBERNETES_PORT": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
    "KUBERNETES_PORT_443_TCP_PORT": "443",
    "KUBERNETES_PORT_443_TCP_ADDR": "10.96.0.1",
}


def told(
    scene: type[Scene],
    *services: Service,
    links: bool | None = True,
    api_server: ServiceAddress | None = None,
) -> Any:
    read = [json.decode(json.encode(one), LinkedService) for one in services]
    return service_variables(scene.pod("a", enable_service_links=links), read, api_server)


def test_every_port_of_a_service(scene: type[Scene]) -> None:
    ports = (
        ServicePort(name="web-ui", protocol="TCP", port=80),
        ServicePort(name="dns", protocol="UDP", port=53),
    )
    found = told(scene, service("my-app", "10.0.0.9", *ports))
    assert list(found.items()) == [
        ("MY_APP_SERVICE_HOST", "10.0.0.9"),
        ("MY_APP_SERVICE_PORT", "80"),
        ("MY_APP_SERVICE_PORT_WEB_UI", "80"),
        ("MY_APP_SERVICE_PORT_DNS", "53"),
        ("MY_APP_PORT", "tcp://10.0.0.9:80"),
        ("MY_APP_PORT_80_TCP", "tcp://10.0.0.9:80"),
        ("MY_APP_PORT_80_TCP_PROTO", "tcp"),
        ("MY_APP_PORT_80_TCP_PORT", "80"),
        ("MY_APP_PORT_80_TCP_ADDR", "10.0.0.9"),
        ("MY_APP_PORT_53_UDP", "udp://10.0.0.9:53"),
        ("MY_APP_PORT_53_UDP_PROTO", "udp"),
        ("MY_APP_PORT_53_UDP_PORT", "53"),
        ("MY_APP_PORT_53_UDP_ADDR", "10.0.0.9"),
    ]


def test_an_unnamed_port_without_protocol_and_an_address_of_ip_version_6(scene: type[Scene]) -> None:
    assert told(scene, service("db", "fd00::9", ServicePort(port=5432))) == {
        "DB_SERVICE_HOST": "fd00::9",
        "DB_SERVICE_PORT": "5432",
        "DB_PORT": "tcp://[fd00::9]:5432",
        "DB_PORT_5432_TCP": "tcp://[fd00::9]:5432",
        "DB_PORT_5432_TCP_PROTO": "tcp",
        "DB_PORT_5432_TCP_PORT": "5432",
        "DB_PORT_5432_TCP_ADDR": "fd00::9",
    }


@pytest.mark.parametrize("links", [True, False])
def test_the_api_server_is_told_of_everywhere_others_where_they_are_wanted(
    scene: type[Scene], links: bool
) -> None:
    others = (service("web"), service("far", namespace="elsewhere"), service("x", namespace="default"))
    found = told(scene, *others, API, links=links)
    assert {name: found[name] for name in OF_API} == OF_API
    assert ("WEB_SERVICE_HOST" in found) == links
    assert not any(name.startswith(("FAR_", "X_")) for name in found)


@pytest.mark.parametrize("address", ["", "None"])
def test_services_without_a_cluster_address_are_passed_over(scene: type[Scene], address: str) -> None:
    assert told(scene, service("web", address)) == {}


@pytest.mark.parametrize("api_first", [True, False])
def test_a_namespace_may_have_a_service_named_like_the_api_servers(
    scene: type[Scene], api_first: bool
) -> None:
    both = (API, service("kubernetes")) if api_first else (service("kubernetes"), API)
    assert told(scene, *both)["KUBERNETES_SERVICE_HOST"] == "10.0.0.9"
    assert told(scene, *both, links=False) == OF_API


def test_the_api_server_is_where_pods_can_reach_it(scene: type[Scene]) -> None:
    """The names stay those of the service; only what they say is where it is reached."""
    found = told(scene, API, service("web"), api_server=ServiceAddress("192.0.2.1", 6443))
    assert {name: value for name, value in found.items() if name.startswith("KUBERNETES")} == {
        "KUBERNETES_SERVICE_HOST": "192.0.2.1",
        "KUBERNETES_SERVICE_PORT": "6443",
        "KUBERNETES_SERVICE_PORT_HTTPS": "6443",
        "KUBERNETES_PORT": "tcp://192.0.2.1:6443",
        "KUBERNETES_PORT_443_TCP": "tcp://192.0.2.1:6443",
        "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
        "KUBERNETES_PORT_443_TCP_PORT": "6443",
        "KUBERNETES_PORT_443_TCP_ADDR": "192.0.2.1",
    }
    assert found["WEB_SERVICE_HOST"] == "10.0.0.9"
