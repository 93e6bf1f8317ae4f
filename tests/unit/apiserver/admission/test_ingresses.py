"""R-SYS-8: an ingress that names no class is of the default one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"


def ingress(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "annotations": annotations or {}}
    return {"metadata": meta, "spec": {"defaultBackend": BACKEND, **spec}}


async def make_class(api: Conversation, name: str, is_default: str) -> None:
    body = {"metadata": {"name": name, "annotations": {IS_DEFAULT: is_default}}}
    assert (await api.post(CLASSES, body | {"spec": {"controller": "example.com/c"}})).status == 201


async def test_the_default_class_is_given(api: Conversation) -> None:
    for name, is_default in (("a", "false"), ("c", "true"), ("b", "true")):
        await make_class(api, name, is_default)
    made = (await api.post(INGRESSES, ingress("i"))).body
    # Both are of the same second.
    assert made["spec"]["ingressClassName"] == "b"
    api.clock.move(1)
    await make_class(api, "d", "true")
    made = (await api.post(INGRESSES, ingress("j"))).body
    assert made["spec"]["ingressClassName"] == "d"


async def test_without_a_default_class_there_is_none(api: Conversation) -> None:
    await make_class(api, "a", "no")
    made = (await api.post(INGRESSES, ingress("i"))).body
    assert "ingressClassName" not in made["spec"]


async def test_a_class_that_is_named_stays(api: Conversation) -> None:
    await make_class(api, "a", "true")
    named = (await api.post(INGRESSES, ingress("i", ingressClassName="b"))).body
    assert named["spec"]["ingressClassName"] == "b"
    annotated = (await api.post(INGRESSES, ingress("j", {"kubernetes.io/ingress.class": "b"}))).body
    assert "ingressClassName" not in annotated["spec"]
