"""An issuer of JSON Web Tokens on loopback, with OpenID Connect Discovery; tokens that are good, and bad
ones.
"""

from __future__ import annotations

import base64
import hmac
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from podling.apiserver.authn.tokens import ISSUER
from podling.machine.pki import Authority

HOST = "127.0.0.1"
MINUTE = 60
# Not `'n' in claims`, which fails in Kubernetes: there one asks `has` of the claims themselves.
NUMBER = "has(claims.n) ? string(type(claims.n) == int) + string(claims.n) : 'none'"
RULED, EXPRESSED, EMAILED = "ruled", "expressed", "emailed"
"""Audiences, and the ends of the URLs of those who issue for them."""


class TokenMint:
    def __init__(self, port: int, authority: str) -> None:
        self.url = f"https://{HOST}:{port}"
        self.authority = authority
        self.rsa = rsa.generate_private_key(65537, 2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.stranger = rsa.generate_private_key(65537, 2048)

    def answers(self) -> Mapping[str, Any]:
        keys = [
            {**RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True), "kid": "rsa", "use": "sig"},
            {**ECAlgorithm.to_jwk(self.ec.public_key(), as_dict=True), "kid": "ec", "alg": "ES256"},
            {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
        ]
        found = {
            f"{path}/.well-known/openid-configuration": {
                "issuer": f"{self.url}{path}",
                "jwks_uri": f"{self.url}/keys",
                "id_token_signing_alg_values_supported": ["RS256"],
            }
            for path in ("", f"/{RULED}", f"/{EMAILED}")
        }
        found["/elsewhere"] = {"issuer": f"{self.url}/{EXPRESSED}", "jwks_uri": f"{self.url}/keys"}
        return {"/keys": {"keys": keys}, **found}

    def configuration(self) -> Any:
        username = {"claim": "sub", "prefix": "oidc:"}
        return {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "anonymous": {"enabled": True, "conditions": [{"path": "/livez"}, {"path": "/readyz"}]},
            "jwt": [
                {
                    "issuer": self._issuer("", ["podling", "other"], audienceMatchPolicy="MatchAny"),
                    "claimMappings": {
                        "username": username,
                        "groups": {"claim": "groups", "prefix": "g:"},
                        "uid": {"claim": "uid"},
                    },
                },
                {
                    "issuer": self._issuer(f"/{RULED}", [RULED]),
                    "claimMappings": {"username": {"claim": "name", "prefix": ""}},
                    "claimValidationRules": [
                        {"claim": "tenant", "requiredValue": "acme"},
                        {"expression": "claims.exp - claims.iat <= 3600", "message": "too long"},
                    ],
                    "userValidationRules": [
                        {"expression": "!user.username.startsWith('system:')", "message": "reserved"},
                        {"expression": "user.groups.all(g, g != 'x') && user.uid == ''"},
                        {"expression": "user.extra.size() == 0"},
                    ],
                },
                {
                    "issuer": self._issuer(
                        f"/{EXPRESSED}", [EXPRESSED], discoveryURL=f"{self.url}/elsewhere"
                    ),
                    "claimMappings": {
                        "username": {"expression": "claims.name + (has(claims.at) ? '@' + claims.at : '')"},
                        "groups": {"expression": "claims.?groups.orValue([])"},
                        "uid": {"expression": NUMBER},
                        "extra": [
                            {"key": "a.example/a", "valueExpression": "claims.?a.orValue('')"},
                            {"key": "a.example/b", "valueExpression": "claims.?b.orValue([])"},
                        ],
                    },
                },
                {
                    "issuer": self._issuer(f"/{EMAILED}", [EMAILED]),
                    "claimMappings": {"username": {"claim": "email", "prefix": ""}},
                },
            ],
        }

    def _issuer(self, path: str, audiences: list[str], **more: Any) -> Any:
        return {
            "url": f"{self.url}{path}",
            "certificateAuthority": self.authority,
            "audiences": audiences,
            **more,
        }

    def token(
        self,
        sub: Any = "plain",
        *,
        path: str = "",
        key: Any = None,
        alg: str = "RS256",
        headers: Mapping[str, Any] | None = None,
        without: str = "",
        **claims: Any,
    ) -> str:
        now = int(time.time())
        said = {
            "iss": self.url + (f"/{path}" if path else ""),
            "aud": path or "podling",
            "sub": sub,
            "iat": now,
            "exp": now + 10 * MINUTE,
            **claims,
        }
        said.pop(without, None)
        head = {"kid": "rsa", **(headers or {})}
        return jwt.api_jws.encode(
            json.dumps(said).encode(),
            key or self.rsa,
            algorithm=alg,
            headers={k: v for k, v in head.items() if v},
        )


def _in(minutes: float) -> int:
    return int(time.time() + minutes * MINUTE)


def _part(data: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).rstrip(b"=").decode()


def _public(mint: TokenMint) -> bytes:
    return mint.rsa.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _confused(mint: TokenMint) -> str:
    """Signed with what everybody knows, the issuer's public key, as if that was a secret."""
    said = {"iss": mint.url, "aud": "podling", "sub": "root", "uid": "1", "exp": _in(5)}
    signed = f"{_part({'alg': 'HS256', 'kid': 'rsa'})}.{_part(said)}"
    signature = hmac.digest(_public(mint), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _tampered(mint: TokenMint) -> str:
    head, _, signature = mint.token().split(".")
    said = {"iss": mint.url, "aud": "podling", "sub": "root", "exp": _in(5)}
    return f"{head}.{_part(said)}.{signature}"


def _unsigned(mint: TokenMint) -> str:
    said = {"iss": mint.url, "aud": "podling", "sub": "root", "exp": _in(5)}
    return f"{_part({'alg': 'none'})}.{_part(said)}."


def ruled(**claims: Any) -> Callable[[TokenMint], str]:
    return lambda mint: mint.token(path=RULED, **{"name": "ann", "tenant": "acme", **claims})


def expressed(**claims: Any) -> Callable[[TokenMint], str]:
    return lambda mint: mint.token(path=EXPRESSED, **{"name": "ann", **claims})


def emailed(**claims: Any) -> Callable[[TokenMint], str]:
    return lambda mint: mint.token(path=EMAILED, **claims)


TOKENS_MADE: Mapping[str, Callable[[TokenMint], str]] = {
    "plain": lambda mint: mint.token(uid="1"),
    "no uid": lambda mint: mint.token(),
    "uid number": lambda mint: mint.token(uid=1),
    "groups": lambda mint: mint.token(uid="1", groups=["a", "b"]),
    "one group": lambda mint: mint.token(uid="1", groups="a"),
    "empty group": lambda mint: mint.token(uid="1", groups=""),
    "no groups": lambda mint: mint.token(uid="1", groups=None),
    "groups of numbers": lambda mint: mint.token(uid="1", groups=[1]),
    "groups object": lambda mint: mint.token(uid="1", groups={"a": "b"}),
    "masters": lambda mint: mint.token(uid="1", groups=["system:masters"]),
    "elliptic": lambda mint: mint.token(uid="1", key=mint.ec, alg="ES256", headers={"kid": "ec"}),
    "no kid": lambda mint: mint.token(uid="1", headers={"kid": ""}),
    "RS512": lambda mint: mint.token(uid="1", alg="RS512"),
    "PS256": lambda mint: mint.token(uid="1", alg="PS256"),
    "other kid": lambda mint: mint.token(uid="1", headers={"kid": "nope"}),
    "kid of another": lambda mint: mint.token(uid="1", headers={"kid": "ec"}),
    "other key": lambda mint: mint.token(uid="1", key=mint.stranger),
    "crit": lambda mint: mint.token(uid="1", headers={"crit": ["x"], "x": 1}),
    "typ": lambda mint: mint.token(uid="1", headers={"typ": "at+jwt"}),
    "HS with the public key": _confused,
    "HS with the secret": lambda mint: mint.token(
        uid="1", key=b"secret" * 8, alg="HS256", headers={"kid": "secret"}
    ),
    "none": _unsigned,
    "tampered": _tampered,
    "no signature": lambda mint: mint.token(uid="1").rpartition(".")[0] + ".",
    "two parts": lambda mint: mint.token(uid="1").rpartition(".")[0],
    "four parts": lambda mint: mint.token(uid="1") + ".a",
    "1,000 parts": lambda mint: ".".join([mint.token(uid="1")] * 300),
    "huge": lambda mint: mint.token(uid="1", more="x" * 100_000),
    "deep": lambda mint: mint.token(uid="1", more=json.loads("[" * 500 + "]" * 500)),
    "expired": lambda mint: mint.token(uid="1", exp=_in(-1)),
    "just expired": lambda mint: mint.token(uid="1", exp=_in(-0.1)),
    "no expiry": lambda mint: mint.token(uid="1", without="exp"),
    "expiry fraction": lambda mint: mint.token(uid="1", exp=_in(5) + 0.5),
    "expiry text": lambda mint: mint.token(uid="1", exp=str(_in(5))),
    "expiry word": lambda mint: mint.token(uid="1", exp="never"),
    "not yet for half a minute": lambda mint: mint.token(uid="1", nbf=_in(0.5)),
    "not yet for three minutes": lambda mint: mint.token(uid="1", nbf=_in(3)),
    "not yet for six minutes": lambda mint: mint.token(uid="1", nbf=_in(6)),
    "issued later": lambda mint: mint.token(uid="1", iat=_in(9)),
    "nbf null": lambda mint: mint.token(uid="1", nbf=None),
    "iat text": lambda mint: mint.token(uid="1", iat="a"),
    "other audience": lambda mint: mint.token(uid="1", aud="nope"),
    "second audience": lambda mint: mint.token(uid="1", aud="other"),
    "audiences": lambda mint: mint.token(uid="1", aud=["nope", "other"]),
    "no audience": lambda mint: mint.token(uid="1", without="aud"),
    "no audiences": lambda mint: mint.token(uid="1", aud=[]),
    "audience number": lambda mint: mint.token(uid="1", aud=1),
    "other issuer": lambda mint: mint.token(uid="1", iss="https://elsewhere.example"),
    "issuer with slash": lambda mint: mint.token(uid="1", iss=f"{mint.url}/"),
    "no issuer": lambda mint: mint.token(uid="1", without="iss"),
    "issuer number": lambda mint: mint.token(uid="1", iss=1),
    "no subject": lambda mint: mint.token(uid="1", without="sub"),
    "empty subject": lambda mint: mint.token("", uid="1"),
    "subject number": lambda mint: mint.token(1, uid="1"),
    "anonymous": lambda mint: mint.token(uid="1", path="", groups=["system:unauthenticated"]),
    "ruled": ruled(),
    "ruled system": ruled(name="system:admin"),
    "ruled other tenant": ruled(tenant="other"),
    "ruled no tenant": ruled(tenant=None),
    "ruled tenant list": ruled(tenant=["acme"]),
    "ruled too long": lambda mint: ruled(exp=_in(120))(mint),
    "ruled no name": ruled(name=None),
    "ruled empty name": ruled(name=""),
    "ruled other issuer's audience": lambda mint: mint.token(
        path=RULED, aud="podling", name="ann", tenant="acme"
    ),
    "expressed": expressed(),
    "expressed at": expressed(at="home"),
    "expressed no name": expressed(name=None),
    "expressed empty": expressed(name=""),
    "expressed number": expressed(name=1),
    "expressed groups": expressed(groups=["a", "", " ", "b"]),
    "expressed one group": expressed(groups="a"),
    "expressed empty group": expressed(groups=""),
    "expressed groups null": expressed(groups=None),
    "expressed groups numbers": expressed(groups=[1]),
    "expressed groups map": expressed(groups={"a": "b"}),
    "expressed int": expressed(n=1),
    "expressed float": expressed(n=1.5),
    "expressed large": expressed(n=10**15),
    "expressed bool": expressed(n=True),
    "expressed text": expressed(n="x"),
    "expressed extra": expressed(a="1", b=["2", "3"]),
    "expressed extra empty": expressed(a="", b=[""]),
    "expressed extra number": expressed(a=1),
    "emailed": emailed(email="a@b.example"),
    "emailed verified": emailed(email="a@b.example", email_verified=True),
    "emailed not verified": emailed(email="a@b.example", email_verified=False),
    "emailed verified text": emailed(email="a@b.example", email_verified="true"),
    "emailed verified null": emailed(email="a@b.example", email_verified=None),
    "no address": emailed(),
}


def _of(name: str, **more: Any) -> Any:
    return {"authenticated": True, "user": {"username": name, **more}}


REVIEWED: Mapping[str, Any] = {
    "w-plain": _of("wim"),
    "w-all": _of("wim", uid="1", groups=["a"], extra={"a.example/B": ["c"]}),
    "w-group": _of("wim", groups=["system:unauthenticated"]),
    "w-not": {"authenticated": False, "user": {"username": "wim"}},
    "w-error": {"error": "out of order"},
    "w-error-too": {**_of("wim"), "error": "out of order"},
    "w-no-name": _of(""),
    "w-elsewhere": {**_of("wim"), "audiences": ["elsewhere"]},
    "w-here": {**_of("wim"), "audiences": ["elsewhere", ISSUER]},
    "w-nowhere": {**_of("wim"), "audiences": []},
}
"""What a webhook says of tokens."""


@contextmanager
def running_mint(directory: Path) -> Iterator[TokenMint]:
    authority = Authority(directory, datetime.now(UTC))
    pair = authority.server("issuer", "issuer", [HOST])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.tell(mint.answers().get(self.path))

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.tell({**asked, "status": REVIEWED.get(asked["spec"]["token"], {})})

        def tell(self, said: Any) -> None:
            body = json.dumps(said).encode()
            self.send_response(404 if said is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer((HOST, 0), Answers)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    mint = TokenMint(server.server_port, authority.ca.certificate.read_text())
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield mint
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
