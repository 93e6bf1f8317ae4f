"""Builds from their options those who decide what users may do."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from podling.apiserver.authz.configuration import Step, WebhookSettings
from podling.apiserver.authz.modes import Chosen
from podling.apiserver.authz.webhook import Conditions, WebhookAuthorizer
from podling.assemble.settle import AuthorizationOptions
from podling.machine.start import StartError
from podling.model.rules.authorization_modes import WEBHOOK
from podling.process.followed import contents


@asynccontextmanager
async def authorization(options: AuthorizationOptions) -> AsyncIterator[Chosen]:
    """Those who are asked while the block runs. Raises StartError."""
    async with AsyncExitStack() as running:
        if options.steps_file is None:
            yield _chosen(_steps(options), running)
            return
        # Only a file has conditions, whose engine takes 0.1 s and 14 MB.
        from podling.apiserver.rules.authorization import read_configuration
        from podling.assemble.followed import follow, read_file

        file = options.steps_file
        try:
            (before,) = await contents((file,))
            steps = await asyncio.to_thread(read_file, file, before, read_configuration)
            chosen = _chosen(steps, running)
            chosen.digest = _digest(before)
        except ValueError as error:
            raise StartError(str(error)) from error

        async def put(now: bytes) -> None:
            try:
                if chosen.put(await asyncio.to_thread(read_file, file, now, read_configuration)):
                    chosen.digest = _digest(now)
                    chosen.reloads[True] += 1
            except ValueError:
                chosen.reloads[False] += 1
                raise

        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follow("the authorization configuration", file, before, put))
            try:
                yield chosen
            finally:
                following.cancel()


def _digest(data: bytes | None) -> str:
    return f"sha256:{hashlib.sha256(data or b'').hexdigest()}"


def _steps(options: AuthorizationOptions) -> Sequence[Step]:
    """What flags say."""
    webhook = WebhookSettings(
        str(options.access_webhook or ""),
        version=options.access_webhook_version,
        allowed_ttl=options.allowed_ttl,
        other_ttl=options.other_ttl,
    )
    return [Step(mode, mode.lower(), webhook if mode == WEBHOOK else None) for mode in options.modes]


def _chosen(steps: Sequence[Step], running: AsyncExitStack) -> Chosen:
    def webhook(settings: WebhookSettings) -> WebhookAuthorizer:
        """Raises ValueError."""
        from podling.assemble.webhooks import sending, transport_of

        try:
            transport, server = transport_of(Path(settings.kubeconfig))
        except ValueError as error:
            raise ValueError(
                f"the authorization webhook of {settings.kubeconfig} cannot be used: {error}"
            ) from error
        running.push_async_callback(transport.close)
        conditions: Conditions | None = None
        if settings.conditions:
            from podling.apiserver.authz.conditions import MatchConditions

            conditions = MatchConditions(settings.conditions)
        send = sending(transport, server, settings.seconds)
        return WebhookAuthorizer(settings, send, time.monotonic, conditions)

    try:
        return Chosen(steps, webhook)
    except ValueError as error:
        raise StartError(str(error)) from error
