"""`/`, the index of all paths, and OpenID discovery with the public key, by which others can verify service
account tokens without asking this server.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from podling.apiserver.authn.tokens import ALGORITHM, ISSUER, SigningKey
from podling.apiserver.request.context import PathHandler, RequestContext
from podling.apiserver.request.negotiation import check_offered
from podling.apiserver.request.response import JSON, Layout, MethodNotSupported, Response

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
_HEADERS = {"Cache-Control": "public, max-age=3600"}


class OpenID:
    """`address`: the host and port by which clients reach this server."""

    def __init__(self, key: SigningKey, address: str) -> None:
        configuration = {
            "issuer": ISSUER,
            "jwks_uri": f"https://{address}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }
        self._answers = {
            CONFIGURATION: (msgspec.json.encode(configuration), JSON),
            KEYS: (msgspec.json.encode({"keys": [key.jwk()]}), "application/jwk-set+json"),
        }

    @property
    def paths(self) -> Collection[str]:
        return self._answers.keys()

    async def serve(self, context: RequestContext) -> Response | None:
        if not (answer := self._answers.get(context.info.path.rstrip("/"))):
            return None
        if context.request.method != "GET":
            raise MethodNotSupported(("GET",))
        body, content_type = answer
        check_offered(context.request.headers.get("Accept", ""), (content_type,))
        return Response(200, body, content_type, dict(_HEADERS), Layout.DOCUMENT)


class Index:
    def __init__(self, handlers: Sequence[PathHandler]) -> None:
        self._handlers = handlers

    @property
    def paths(self) -> Collection[str]:
        """Empty: the index does not list itself."""
        return ()

    async def serve(self, context: RequestContext) -> Response | None:
        if context.info.path not in ("/", "/index.html"):
            return None
        found = sorted({path for handler in self._handlers for path in handler.paths})
        return Response(200, msgspec.json.encode({"paths": found}), layout=Layout.INDENTED)
