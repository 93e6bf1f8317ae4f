"""The volume with a token: into whom it goes, and that it is off until it is turned on."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from podling.apiserver.admission.plugin import Attributes
from podling.apiserver.admission.pods import PLACE
from podling.apiserver.admission.pods import ServiceAccountPlugin as Plugin
from podling.apiserver.request.request import User
from podling.model.codec.json import from_data, to_data
from podling.model.scheme import resource_of
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod
from unit.apiserver.admission.sent import Itself

T = TypeVar("T", bound=KubeObject)
OWN = {"name": "mine", "mountPath": PLACE}


async def admitted(spec: dict[str, Any], account: dict[str, Any] | None = None, on: bool = True) -> Any:
    def find(type: type[T], namespace: str, name: str) -> T:
        return from_data(account or {}, type)

    pod = from_data({"spec": spec}, Pod)
    attributes = Attributes("CREATE", resource_of(Pod), "", "default", "p", User("me"), "pods", Itself())
    await Plugin(find, mount_tokens=on).admit(attributes, pod, None)
    return to_data(pod.spec)


def mounted(spec: Any) -> list[str]:
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    return [c["name"] for c in containers for m in c.get("volumeMounts", []) if m["name"][:4] == "kube"]


async def test_the_volume_is_kubernetes_own() -> None:
    spec = await admitted({"containers": [{"name": "c"}]})
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-") and len(volume["name"]) == 21
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
    }
    assert spec["containers"][0]["volumeMounts"] == [
        {"name": volume["name"], "readOnly": True, "mountPath": PLACE}
    ]


@pytest.mark.parametrize(
    ("spec", "account", "expected"),
    [
        ({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}, {}, ["i", "a"]),
        ({"containers": [{"name": "a"}, {"name": "b", "volumeMounts": [OWN]}]}, {}, ["a"]),
        ({"containers": [{"name": "a", "volumeMounts": [OWN]}]}, {}, []),
        ({"containers": [{"name": "a"}]}, {"automountServiceAccountToken": False}, []),
        ({"containers": [{"name": "a"}], "automountServiceAccountToken": False}, {}, []),
        ({"containers": [{"name": "a"}], "automountServiceAccountToken": True},
         {"automountServiceAccountToken": False}, ["a"]),
    ],
)  # fmt: skip
async def test_who_gets_it(spec: dict[str, Any], account: dict[str, Any], expected: list[str]) -> None:
    got = await admitted(spec, account)
    assert mounted(got) == expected
    assert bool(got.get("volumes")) is bool(expected)


async def test_a_pod_that_has_it_gets_no_second() -> None:
    there = {"name": "kube-api-access-x", "projected": {"sources": []}}
    spec = await admitted({"containers": [{"name": "a"}], "volumes": [there]})
    assert [volume["name"] for volume in spec["volumes"]] == ["kube-api-access-x"]
    assert mounted(spec) == ["a"]


async def test_it_is_off_at_first() -> None:
    assert "volumes" not in await admitted({"containers": [{"name": "a"}]}, on=False)
