"""Reads the file that configures admission plugins, and opens the way to whom they ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from podling.apiserver.admission.plugin_options import NO_PLUGIN_OPTIONS, ImagePolicy, PluginOptions
from podling.assemble.settle import AdmissionOptions
from podling.machine.start import StartError

NEED_OPTIONS = frozenset({"EventRateLimit", "ImagePolicyWebhook"})
"""Plugins that cannot be without any."""

LONGEST = 30.0
"""Seconds that a webhook may take to judge images."""


@asynccontextmanager
async def plugin_options(options: AdmissionOptions) -> AsyncIterator[PluginOptions]:
    """What the plugins are told while the block runs. Raises StartError."""
    if options.file is None and not NEED_OPTIONS & options.plugins:
        yield NO_PLUGIN_OPTIONS
        return
    from podling.apiserver.admission.configuration import read_configuration
    from podling.assemble.followed import read_file
    from podling.assemble.webhooks import sending, transport_of

    file = options.file

    def read(path: str) -> bytes:
        # Relative to the file that names it, as in Kubernetes.
        found = Path(path) if file is None else file.parent / path
        return read_file(found, None, bytes)

    try:
        data = None if file is None else read(file.name)
        told, settings = read_configuration(data, read, options.plugins)
        transport, server = transport_of(Path(settings.kubeconfig)) if settings is not None else (None, "")
    except ValueError as error:
        where = "" if file is None else f" {file}"
        raise StartError(f"the admission configuration{where} cannot be used: {error}") from error
    if settings is None or transport is None:
        yield told
        return
    try:
        send = sending(transport, server, LONGEST)
        kept = settings.allowed_ttl, settings.denied_ttl
        policy = ImagePolicy(send, *kept, settings.backoff, settings.fails_open)
        yield replace(told, image_policy=policy)
    finally:
        await transport.close()
