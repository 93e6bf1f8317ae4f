"""Issuers of JSON Web Tokens, from a file that may change or from the options `--oidc-…`, and where strangers
are let in.

Imported only where there are issuers: their rules are expressions, whose engine takes 0.1 s and 14 MB.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from podling.apiserver.authn.configuration import AuthenticationConfiguration, Doors, one_issuer
from podling.apiserver.authn.json_web_tokens import ALGORITHMS, JsonWebTokens, TokenIssuer
from podling.apiserver.authn.keys import Fetch, Keys
from podling.apiserver.authn.tokens import ISSUER
from podling.apiserver.rules.authentication import check, read_configuration
from podling.apiserver.rules.configuration_file import ConfigurationError
from podling.assemble.followed import follow, read_file
from podling.assemble.settle import AuthenticationOptions
from podling.machine.start import StartError
from podling.model.codec.quoting import quoted
from podling.model.time import Clock
from podling.process.followed import contents
from podling.process.tls import connecting_context

PATIENCE = 10.0
"""Seconds that an issuer may take to answer."""
MOST_BYTES = 1 << 20
"""Of an answer of an issuer."""


@asynccontextmanager
async def of_flags(options: AuthenticationOptions, clock: Clock) -> AsyncIterator[JsonWebTokens]:
    """The one issuer that `--oidc-…` name. Raises StartError."""
    if not options.oidc_issuer or not options.oidc_client:
        flags = "oidc-issuer-url and oidc-client-id"
        raise StartError(f"{flags} must be specified together when any oidc-* flags are set")
    for algorithm in options.oidc_algorithms:
        if algorithm not in ALGORITHMS:
            raise StartError(f"oidc: unsupported signing alg: {quoted(algorithm)}")
    try:
        authority = options.oidc_ca.read_text() if options.oidc_ca else ""
        said = one_issuer(
            options.oidc_issuer,
            options.oidc_client,
            authority,
            options.oidc_username,
            options.oidc_username_prefix,
            options.oidc_groups,
            options.oidc_groups_prefix,
            options.oidc_required,
        )
        await asyncio.to_thread(check, said, {ISSUER})
    except (OSError, ConfigurationError) as error:
        raise StartError(str(error)) from error
    patience = aiohttp.ClientTimeout(total=PATIENCE)
    async with aiohttp.ClientSession(timeout=patience) as session:
        keys = Keys(options.oidc_issuer, "", _fetching(session, authority), time.monotonic)
        tokens = JsonWebTokens({}, clock)
        tokens.issuers = {options.oidc_issuer: TokenIssuer(said.jwt[0], keys, options.oidc_algorithms)}
        async with asyncio.TaskGroup() as tasks:
            fetching = tasks.create_task(keys.refresh())
            try:
                yield tokens
            finally:
                fetching.cancel()


@asynccontextmanager
async def of_file(file: Path, doors: Doors, clock: Clock) -> AsyncIterator[JsonWebTokens]:
    """Does what a file says, and what it says later. Raises StartError for what it says at first."""
    tokens = JsonWebTokens({}, clock)

    def put(configuration: AuthenticationConfiguration) -> None:
        doors.put(configuration)
        tokens.issuers = {
            one.issuer.url: TokenIssuer(
                one,
                Keys(
                    one.issuer.url,
                    one.issuer.discovery_URL,
                    _fetching(session, one.issuer.certificate_authority),
                    time.monotonic,
                ),
            )
            for one in configuration.jwt
        }
        for issuer in tokens.issuers.values():
            tasks.create_task(issuer.keys.refresh())

    async def change(now: bytes) -> None:
        put(await asyncio.to_thread(read_file, file, now, _read))

    try:
        (before,) = await contents((file,))
        first = await asyncio.to_thread(read_file, file, before, _read)
        doors.put(first)
    except ValueError as error:
        raise StartError(f"the authentication configuration {file} cannot be used: {error}") from error
    patience = aiohttp.ClientTimeout(total=PATIENCE)
    async with aiohttp.ClientSession(timeout=patience) as session, asyncio.TaskGroup() as tasks:
        put(first)
        following = tasks.create_task(follow("the authentication configuration", file, before, change))
        try:
            yield tokens
        finally:
            following.cancel()


def _fetching(session: aiohttp.ClientSession, authority: str) -> Fetch:
    """From a server that shows a certificate of `authority`, or of one that the machine trusts."""
    tls = connecting_context(authority.encode() if authority else None)

    async def fetch(url: str) -> bytes:
        try:
            async with session.get(url, ssl=tls) as answer:
                body = await answer.content.read(MOST_BYTES + 1)
                while len(body) <= MOST_BYTES and (more := await answer.content.read(MOST_BYTES)):
                    body += more
                if answer.status != 200 or len(body) > MOST_BYTES:
                    raise OSError(f"{url} answered {answer.status} with {len(body)} bytes")
                return body
        except (aiohttp.ClientError, TimeoutError) as error:
            raise OSError(f"{url}: {error}") from error

    return fetch


def _read(data: bytes) -> AuthenticationConfiguration:
    """Raises ConfigurationError."""
    return read_configuration(data, {ISSUER})
