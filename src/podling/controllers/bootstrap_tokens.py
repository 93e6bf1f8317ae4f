"""Bootstrap tokens: those that may sign the ConfigMap `cluster-info` of kube-public, by which who joins knows
the cluster, do so, and those that have expired are deleted.

A signature is a detached JWS (RFC 7515, HS256) of the kubeconfig in `cluster-info`, in its key
`jws-kubeconfig-TOKENID`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, own_key
from podling.model.rules.bootstrap_tokens import PREFIX, expiration, has_expired, told
from podling.model.time import Clock
from podling.model.types.core import ConfigMap, Secret

INFO: Key = ("kube-public", "cluster-info")
KUBECONFIG, SIGNATURE = "kubeconfig", "jws-kubeconfig-"
_NAME = re.compile(rf"{PREFIX}([a-z0-9]{{6}})")


def signing_tokens(secrets: Iterable[Secret], now: datetime) -> dict[str, str]:
    """The tokens that may sign now: id → secret."""
    tokens = {}
    for one in secrets:
        said, named = told(one), _NAME.fullmatch(one.metadata.name)
        if (
            named is not None
            and said.get("token-id") == named[1]
            and said.get("token-secret")
            and said.get("usage-bootstrap-signing") == "true"
            and not has_expired(said, now)
        ):
            tokens[named[1]] = said["token-secret"]
    return tokens


def signature(content: str, token: str, secret: str) -> str:
    """A JWS without its content: `header..signature`."""
    header = _base64(json.dumps({"alg": "HS256", "kid": token}, separators=(",", ":")).encode())
    signed = f"{header}.{_base64(content.encode())}".encode()
    return f"{header}..{_base64(hmac.digest(secret.encode(), signed, hashlib.sha256))}"


def signed(info: ConfigMap, tokens: dict[str, str]) -> dict[str, str]:
    """The data of `cluster-info`, with the signatures of these tokens and of no others."""
    content = info.data.get(KUBECONFIG)
    if content is None:
        return info.data
    rest = {key: value for key, value in info.data.items() if not key.startswith(SIGNATURE)}
    return rest | {SIGNATURE + token: signature(content, token, key) for token, key in tokens.items()}


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class BootstrapSigner:
    name = "bootstrapsigner"

    def __init__(
        self, client: Client, infos: Informer[ConfigMap], secrets: Informer[Secret], clock: Clock
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._clock = client, clock
        self._infos, self._secrets = infos, secrets
        infos.subscribe(own_key(self.queue, INFO[1]))
        secrets.subscribe(self._secret_changed)

    async def reconcile(self, key: Key) -> None:
        info = self._infos.get(*INFO)
        if key != INFO or info is None:
            return
        data = signed(info, signing_tokens(self._secrets.items(), self._clock.now()))
        if data != info.data:
            with gone_is_done():
                await self._client.update(replace(info, data=data))

    def _secret_changed(self, old: Secret | None, new: Secret | None) -> None:
        self.queue.add(INFO)


class TokenCleaner:
    name = "tokencleaner"

    def __init__(self, client: Client, secrets: Informer[Secret], clock: Clock) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._secrets, self._clock = client, secrets, clock
        secrets.subscribe(own_key(self.queue))

    async def reconcile(self, key: Key) -> None:
        secret, now = self._secrets.get(*key), self._clock.now()
        if secret is None:
            return
        if has_expired(told(secret), now):
            meta = secret.metadata
            with gone_is_done():
                await self._client.delete(Secret, meta.name, meta.namespace, uid=meta.uid)
        elif until := expiration(told(secret)):
            self.queue.add_after(key, (until - now).total_seconds())
