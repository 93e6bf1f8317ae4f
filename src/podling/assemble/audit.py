"""Builds the audit log from its options: the policy, and where the events go; and reads it again."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from podling.apiserver.observe.audit import AuditLog, Sink
from podling.apiserver.observe.audit_batches import Batching
from podling.apiserver.observe.audit_debugged import Debugged, NoLogError, debugged, lines, rights_of
from podling.apiserver.observe.audit_file import GATHERED, audit_file
from podling.apiserver.observe.audit_policy import DEFAULT, PolicyError, Recording, read_policy
from podling.apiserver.observe.audit_rotation import Rotation
from podling.apiserver.observe.audit_truncate import Truncating
from podling.apiserver.verbs.yaml_body import read_yaml
from podling.assemble.settle import AuditOptions
from podling.client import kubeconfig
from podling.machine.instance import Instance
from podling.machine.start import StartError
from podling.model.errors import StatusError
from podling.model.rules.audit_modes import BATCH
from podling.model.time import Clock

if TYPE_CHECKING:
    from podling.apiserver.observe.audit_webhook import Send
    from podling.client.https import HttpsTransport

NO_FILE = "off"
__all__ = ["NoLogError", "audit_log", "debugged_in", "rights_of"]


@asynccontextmanager
async def audit_log(
    options: AuditOptions, instance: Instance, clock: Clock
) -> AsyncIterator[AuditLog | None]:
    """An audit log that is kept while the block runs, and complete after it; None if there is nowhere to keep
    it. Raises StartError."""
    recording = recording_of(options.policy)
    async with AsyncExitStack() as running:
        sinks: list[Sink] = []
        if options.path != NO_FILE:
            chosen = None if options.path == "-" else Path(options.path or instance.audit_log)
            age = timedelta(days=options.max_age_days)
            rotation = Rotation(options.max_size_mib << 20, options.max_backups, age, options.compress)
            batching = batching_of(options, "")
            file = await running.enter_async_context(
                audit_file(chosen, clock, rotation, batching, options.mode or BATCH)
            )
            sinks.append(Truncating(file, options.longest_event) if options.truncates else file)
        if options.webhook is not None:
            from podling.apiserver.observe.audit_webhook import audit_webhook

            transport = _transport(options.webhook)
            running.push_async_callback(transport.close)
            longest = options.webhook_longest_batch if options.webhook_truncates else 0
            batching = batching_of(options, "webhook_")._replace(max_bytes=longest)
            webhook = await running.enter_async_context(
                audit_webhook(
                    _sending(transport), batching, options.webhook_initial_backoff, options.webhook_mode
                )
            )
            truncates = options.webhook_truncates
            sinks.append(Truncating(webhook, options.webhook_longest_event) if truncates else webhook)
        yield AuditLog(recording, sinks, clock) if sinks else None


def batching_of(options: AuditOptions, prefix: str) -> Batching:
    """Of one sink, the file by itself. Who is waited for is delivered at once."""
    mode, size, most, seconds, throttles, qps, burst = (
        getattr(options, prefix + name)
        for name in ("mode", "buffer_size", "max_size", "max_wait", "throttles", "qps", "burst")
    )
    if mode != BATCH:
        return GATHERED if mode is None else Batching()
    return Batching(size, most, seconds, qps if throttles else math.inf, burst)


def _transport(config: Path) -> HttpsTransport:
    try:
        return kubeconfig.read(config).transport()
    except (OSError, kubeconfig.KubeconfigError) as error:
        raise StartError(f"the audit webhook of {config} cannot be used: {error}") from error


def _sending(transport: HttpsTransport) -> Send:
    async def send(body: bytes) -> int:
        code, _, _ = await transport.request("POST", "", {}, body)
        return code

    return send


def recording_of(policy: Path | None) -> Recording:
    """The policy of a file; podling's own without one. Raises StartError."""
    if policy is None:
        return Recording(DEFAULT, failures=True)
    try:
        body = read_yaml(policy.read_bytes())
        if body.repeated:
            raise PolicyError(f"failed decoding: {', '.join(body.repeated)}")
        return Recording(read_policy(body.json))
    except (OSError, StatusError, PolicyError) as error:
        raise StartError(f"the audit policy {policy} cannot be used: {error}") from error


def debugged_in(log: Path, *, connections: bool) -> Iterator[Debugged]:
    """Who debugged which pod, as the log at `log` knows it. Raises NoLogError, OSError."""
    return debugged(lines(log), connections=connections)
