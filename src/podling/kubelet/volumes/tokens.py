"""The service account tokens of one pod: requested with the TokenRequest API, kept, and renewed.

As in Kubernetes, a token is renewed after 80 % of its lifetime or 24 hours. If renewing fails, the old token
is used until it expires.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

import msgspec

from podling.client.client import Client
from podling.kubelet.volumes.objects import TokenKey
from podling.model.errors import StatusError
from podling.model.time import Clock, parse_time
from podling.model.types.core import BoundObjectReference, ServiceAccount, TokenRequest, TokenRequestSpec
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod

LONGEST_USE = timedelta(hours=24)
RENEWED_AFTER = 0.8
RETRY = timedelta(minutes=1)

log = logging.getLogger(__name__)


class _Token(msgspec.Struct, frozen=True):
    text: str
    renew_at: datetime
    ends_at: datetime


def renewal_time(ends_at: datetime, life: timedelta) -> datetime:
    born = ends_at - life
    return born + min(life * RENEWED_AFTER, LONGEST_USE)


class PodTokens:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._tokens: dict[TokenKey, _Token] = {}

    @property
    def renew_at(self) -> datetime | None:
        """The earliest time at which a token is to be renewed; None without tokens."""
        return min((token.renew_at for token in self._tokens.values()), default=None)

    async def get(self, pod: Pod, key: TokenKey) -> str:
        """A valid token, renewed if due. Raises StatusError or OSError if there is none."""
        known, now = self._tokens.get(key), self._clock.now()
        if known is not None and now < known.renew_at:
            return known.text
        try:
            made = self._tokens[key] = await self._request(pod, key)
        except (StatusError, OSError) as error:
            if known is None or now >= known.ends_at:
                raise
            log.warning("the token of pod %s cannot be renewed: %s", pod.metadata.uid, error)
            made = self._tokens[key] = _Token(known.text, now + RETRY, known.ends_at)
        return made.text

    async def _request(self, pod: Pod, key: TokenKey) -> _Token:
        account, meta = pod.spec.service_account_name, pod.metadata
        request = TokenRequest(
            metadata=ObjectMeta(name=account, namespace=meta.namespace),
            spec=TokenRequestSpec(
                audiences=[key.audience] if key.audience else [],
                expiration_seconds=key.seconds,
                bound_object_ref=BoundObjectReference("Pod", "v1", meta.name, meta.uid),
            ),
        )
        answer = await self._client.ask(ServiceAccount, account, "token", request)
        ends_at = parse_time(answer.status.expiration_timestamp or "")
        # The server may have chosen another life than was asked for.
        life = timedelta(seconds=answer.spec.expiration_seconds or key.seconds)
        return _Token(answer.status.token, renewal_time(ends_at, life), ends_at)
