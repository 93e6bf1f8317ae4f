"""Why the certificates of `--etcd-cafile`, `--etcd-certfile` and `--etcd-keyfile` do not lead to an etcd, in
words for who gave them: at once, where the store tries for long.
"""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

from podling.assemble.settle import EtcdOptions
from podling.process.tls import connecting_context
from podling.storage.etcd.connection import PORT

SPEAKS_TLS = "--etcd-servers: {} speaks TLS: write https://"
PATIENCE = 5.0
"""Seconds for a handshake; a member that does not answer has another fault."""


async def fault_of(options: EtcdOptions) -> str:
    """What is wrong with the files, or for the first member that says so; empty if a member takes them, or
    none answers at all."""
    try:
        connecting_context(options.ca.read_bytes() if options.ca else None)
    except OSError:
        return f"--etcd-cafile: {options.ca} holds no certificate that can be read"
    try:
        context = tls_of(options)
    except OSError:
        files = f"{options.certificate} and {options.key}"
        return f"--etcd-certfile and --etcd-keyfile: {files} are no certificate and its key, in PEM"
    shows = options.certificate is not None
    faults = await asyncio.gather(*(fault_at(url, context, shows=shows) for url in options.servers))
    return "" if None in faults else next(filter(None, faults), "")


def tls_of(options: EtcdOptions) -> ssl.SSLContext:
    """Raises OSError."""
    context = connecting_context(options.ca.read_bytes() if options.ca else None)
    if options.certificate and options.key:
        context.load_cert_chain(options.certificate, options.key)
    context.set_alpn_protocols(["h2"])
    return context


async def fault_at(url: str, context: ssl.SSLContext, *, shows: bool) -> str | None:
    """None if the member takes what it is shown; empty if that cannot be known."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    tls = context if secure else connecting_context(verify=False)
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or PORT, ssl=tls)
            try:
                # With TLS 1.3 a client hears only now that its certificate was refused.
                await reader.read(1)
            finally:
                writer.transport.abort()
    except ssl.SSLCertVerificationError as error:
        return f"--etcd-cafile does not vouch for the certificate of {url}: {error.verify_message}"
    except ssl.SSLError as error:
        if not secure:
            # It does not speak TLS, as is said of it, or asks for a certificate.
            return SPEAKS_TLS.format(url) if "ALERT" in error.reason else None
        if error.reason == "WRONG_VERSION_NUMBER":
            return f"--etcd-servers: {url} does not speak TLS: write http://"
        if "ALERT" not in error.reason:
            return f"--etcd-servers: {url}: {error.reason}"
        if shows:
            return f"--etcd-certfile: {url} refuses the certificate ({error.reason})"
        return f"--etcd-servers: {url} asks for a certificate: give --etcd-certfile and --etcd-keyfile"
    except (OSError, TimeoutError):
        return ""
    return None if secure else SPEAKS_TLS.format(url)
