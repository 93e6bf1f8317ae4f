"""The plugins that are always on, in the order in which Kubernetes asks them."""

from __future__ import annotations

from podling.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from podling.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from podling.apiserver.admission.plugin import Chain, Find
from podling.apiserver.admission.priority import Priority
from podling.apiserver.admission.service_account import ServiceAccount


def built_in(find: Find) -> Chain:
    return Chain((NamespaceLifecycle(find), ServiceAccount(find), Priority(), DefaultTolerationSeconds()))
