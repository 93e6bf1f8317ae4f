"""Builds from their options those who say whose request it is, beside service account and bootstrap
tokens.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from podling.apiserver.authn.authenticators import Authentication, Authenticator, TokenAuthenticator
from podling.apiserver.authn.certificates import CertificateAuthenticator, Issuers
from podling.apiserver.authn.configuration import Doors
from podling.assemble.settle import AuthenticationOptions
from podling.client import kubeconfig
from podling.machine.start import StartError
from podling.model.time import Clock

if TYPE_CHECKING:
    from podling.client.https import HttpsTransport


@asynccontextmanager
async def authentication(
    options: AuthenticationOptions, client_ca: Path, clock: Clock, other_ca: Path | None = None
) -> AsyncIterator[Authentication]:
    """Those who are asked while the block runs. Clients' certificates are of `client_ca`, or `other_ca`.
    Raises StartError."""
    authorities = [client_ca] if other_ca is None else [client_ca, other_ca]
    doors = Doors(options.anonymous)
    async with AsyncExitStack() as running:
        asking: list[TokenAuthenticator] = []
        if options.config_file is not None:
            if options.names_issuer:
                raise StartError("authentication-config file and oidc-* flags are mutually exclusive")
            from podling.assemble.issuers import of_file

            asking.append(await running.enter_async_context(of_file(options.config_file, doors, clock)))
        elif options.names_issuer:
            from podling.assemble.issuers import of_flags

            asking.append(await running.enter_async_context(of_flags(options, clock)))
        if options.token_webhook is not None:
            from podling.apiserver.authn.token_webhook import TokenWebhook

            transport = _transport(options.token_webhook)
            running.push_async_callback(transport.close)

            async def send(body: bytes) -> tuple[int, bytes]:
                code, _, said = await transport.request("POST", "", {}, body)
                return code, said

            asking.append(
                TokenWebhook(
                    send, time.monotonic, ttl=options.token_webhook_ttl, version=options.token_webhook_version
                )
            )
        yield Authentication(_authenticators(options, authorities, clock), tuple(asking), doors.are_open)


def _transport(file: Path) -> HttpsTransport:
    try:
        return kubeconfig.read(file).transport()
    except (OSError, kubeconfig.KubeconfigError) as error:
        raise StartError(f"the authentication webhook of {file} cannot be used: {error}") from error


def _authenticators(
    options: AuthenticationOptions, client_cas: Sequence[Path], clock: Clock
) -> list[Authenticator]:
    authenticators: list[Authenticator] = []
    if options.proxy_ca is not None:
        from podling.apiserver.authn.front_proxy import FrontProxy, Headers

        headers = Headers(
            options.proxy_names,
            options.proxy_users,
            options.proxy_uids,
            options.proxy_groups,
            options.proxy_extra_prefixes,
        )
        authenticators.append(FrontProxy(clock, _issuers(options.proxy_ca), headers))
        authenticators.append(CertificateAuthenticator(clock, _issuers(*client_cas)))
    else:
        authenticators.append(CertificateAuthenticator(clock))
    if options.token_file is not None:
        from podling.apiserver.authn.token_file import TokenFile, read_tokens

        try:
            text = options.token_file.read_text()
            authenticators.append(TokenFile(read_tokens(text, str(options.token_file))))
        except (OSError, ValueError) as error:
            raise StartError(str(error)) from error
    return authenticators


def _issuers(*files: Path) -> Issuers:
    try:
        return Issuers(b"\n".join(file.read_bytes() for file in files))
    except (OSError, ValueError) as error:
        raise StartError(f"{', '.join(map(str, files))} cannot be used: {error}") from error
