"""ServiceAccount: every pod has an identity, one that exists, and is given its token where that is on."""

from __future__ import annotations

from typing import Any

from podling.apiserver.admission import token_volume
from podling.apiserver.admission.plugin import Attributes, Find
from podling.model.pod import Pod
from podling.model.service_account import ServiceAccount as Account

DEFAULT = "default"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class ServiceAccount:
    def __init__(self, find: Find, *, mount_tokens: bool = False) -> None:
        """`mount_tokens` wants kubelets that can make such a volume."""
        self._find = find
        self._mount_tokens = mount_tokens

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if attributes.is_for("pods", "CREATE") and MIRROR_ANNOTATION not in new.metadata.annotations:
            self._admit_pod(attributes, new)

    def _admit_pod(self, attributes: Attributes, pod: Pod) -> None:
        spec = pod.spec
        spec.service_account_name = spec.service_account = spec.service_account_name or DEFAULT
        name = spec.service_account_name
        account = self._find(Account, attributes.namespace, name)
        if account is None:
            where = f"{attributes.namespace}/{name}"
            raise attributes.forbidden(
                f'error looking up service account {where}: serviceaccount "{name}" not found'
            )
        if not spec.image_pull_secrets:
            spec.image_pull_secrets = list(account.image_pull_secrets)
        if self._mount_tokens and token_volume.is_wanted(spec, account):
            token_volume.mount_token(spec)
