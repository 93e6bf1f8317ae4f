"""The way to servers that are sent a review: where a kubeconfig says, with failures in Go's words."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from yarl import URL

from podling.apiserver.admission.webhook_client import words_of
from podling.apiserver.admission.webhooks import refusal_of
from podling.apiserver.authz.webhook import Send, WebhookFailure
from podling.client import kubeconfig
from podling.client.https import HttpsTransport
from podling.model.time import go_duration
from podling.process.http_client import Incomplete

TRANSIENT = frozenset({429, 500, 504})
"""Statuses after which a webhook is asked once more."""


def transport_of(file: Path) -> tuple[HttpsTransport, str]:
    """The way to a server, to be closed, and its URL. Raises ValueError."""
    try:
        access = kubeconfig.read(file)
    except (OSError, kubeconfig.KubeconfigError) as error:
        raise ValueError(str(error)) from error
    return access.transport(), access.server


def sending(transport: HttpsTransport, server: str, seconds: float) -> Send:
    """Waits `seconds` for an answer, and says so."""
    query = {"timeout": go_duration(timedelta(seconds=seconds))}
    url = URL(server).with_query(query)

    def fault(why: str, *, late: bool = False) -> WebhookFailure:
        return WebhookFailure(f'Post "{url}": {why}', late=late)

    async def send(body: bytes) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                code, headers, said = await transport.request("POST", "", query, body)
        except TimeoutError as error:
            why = "net/http: request canceled (Client.Timeout exceeded while awaiting headers)"
            raise fault(why, late=True) from error
        except OSError as error:
            cause = error.__cause__
            known = cause if isinstance(cause, Exception) else error
            raise fault(
                "unexpected EOF" if isinstance(known, Incomplete) else words_of(known, url)
            ) from error
        media_type = headers.get("Content-Type", "")
        if code >= 300:
            again = code in TRANSIENT or "Retry-After" in headers
            raise WebhookFailure(refusal_of(code, media_type, said), again=again, code=code)
        if not said:
            raise WebhookFailure(f"0-length response with status code: {code} and content type: {media_type}")
        return said

    return send
