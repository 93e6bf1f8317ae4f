"""An operator as its users write them: it takes care of pods with the label `care`, whose value it is given.

It says hello to each with an annotation and an event, follows changes of its labels, keeps count of how often
it looked, and lets no pod go before it has written its last will into a config map.
"""

from __future__ import annotations

import os
from typing import Any

import kopf
from kubernetes import client, config

CARE = {"care": os.environ["CARE"]}
config.load_kube_config()


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.level = 20
    settings.persistence.finalizer = f"tests.podling.dev/{CARE['care']}"
    settings.watching.server_timeout = 60


@kopf.index("pods", labels=CARE)
def cared_for(name: str, namespace: str | None, **_: Any) -> dict[str | None, str]:
    return {namespace: name}


# Of an argument that is an index kopf's types know nothing.
@kopf.on.create("pods", labels=CARE)
@kopf.on.resume("pods", labels=CARE)  # type: ignore[arg-type]
def greet(
    patch: kopf.Patch,
    body: kopf.Body,
    cared_for: kopf.Index[str | None, str],
    namespace: str | None,
    **_: Any,
) -> None:
    patch.metadata.annotations["caretaker/neighbours"] = str(len(cared_for[namespace]))
    kopf.event(body, type="Normal", reason="Greeted", message=f"Hello {body.metadata.name}")


@kopf.on.field("pods", labels=CARE, field="metadata.labels.mood")
def follow(old: Any, new: Any, patch: kopf.Patch, **_: Any) -> None:
    patch.metadata.annotations["caretaker/mood"] = f"{old} then {new}"


@kopf.on.create("pods", labels={**CARE, "shy": "yes"})
def approach(retry: int, patch: kopf.Patch, **_: Any) -> None:
    if retry < 2:
        raise kopf.TemporaryError("not yet", delay=0.1)
    patch.metadata.annotations["caretaker/approached"] = f"after {retry} tries"


@kopf.daemon("pods", labels={**CARE, "guarded": "yes"})
async def guard(stopped: kopf.DaemonStopped, patch: kopf.Patch, **_: Any) -> None:
    patch.metadata.annotations["caretaker/guarded"] = "yes"


@kopf.on.delete("pods", labels=CARE)
def bury(name: str, namespace: str | None, **_: Any) -> None:
    assert namespace
    will = {"metadata": {"name": f"will-of-{name}"}, "data": {"said": "goodbye"}}
    client.CoreV1Api().create_namespaced_config_map(namespace, will)  # type: ignore[arg-type]


@kopf.on.create("configmaps", annotations={"caretaker/child": kopf.PRESENT})
def raise_child(body: kopf.Body, namespace: str | None, **_: Any) -> None:
    assert namespace
    child = {"metadata": {"name": "child"}}
    kopf.adopt(child)
    client.CoreV1Api().create_namespaced_secret(namespace, child)  # type: ignore[arg-type]


@kopf.on.create("configmaps", annotations={"caretaker/site": kopf.PRESENT})
def build_site(body: kopf.Body, name: str, namespace: str | None, **_: Any) -> None:
    """A Deployment of as many pods as the ConfigMap says."""
    assert namespace
    labels = {"site": name}
    container = {"name": "c", "image": "podling.test/busybox:1", "command": ["sleep", "1000"]}
    site = {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": int(body["data"]["replicas"]),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
            },
        },
    }
    kopf.adopt(site)
    client.AppsV1Api().create_namespaced_deployment(namespace, site)  # type: ignore[arg-type]


@kopf.on.update("configmaps", annotations={"caretaker/site": kopf.PRESENT}, field="data.replicas")
def resize_site(new: Any, name: str, namespace: str | None, **_: Any) -> None:
    assert namespace
    body = {"spec": {"replicas": int(new)}}
    client.AppsV1Api().patch_namespaced_deployment(name, namespace, body)


@kopf.on.field("deployments", labels={"site": kopf.PRESENT}, field="status.availableReplicas")
def tell_of_site(new: Any, name: str, namespace: str | None, **_: Any) -> None:
    assert namespace
    body = {"metadata": {"annotations": {"caretaker/available": str(new)}}}
    client.CoreV1Api().patch_namespaced_config_map(name, namespace, body)
