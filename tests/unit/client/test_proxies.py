"""Proxies as people have them: in the kubeconfig and in the environment, of every kind."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as some

from podling.client import kubeconfig
from podling.client.kubeconfig import KubeconfigError
from podling.client.proxies import is_direct, of_environment
from proxy import Proxy

if TYPE_CHECKING:
    from unit.client.conftest import Doorman

KINDS = ["http", "https", "socks5"]


def server_tls(doorman: Doorman) -> ssl.SSLContext:
    """Of a proxy whose certificate is the API server's authority's, as kubectl wants it."""
    pair = doorman.authority.server("proxy", "proxy", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


async def ask(doorman: Doorman, **cluster: str) -> int:
    transport = kubeconfig.read(doorman.kubeconfig({"token": "t0"}, **cluster)).transport()
    try:
        return (await transport.request("GET", "/api", {}, None))[0]
    finally:
        await transport.close()


@pytest.mark.parametrize("login", ["", "ada:secret@"])
@pytest.mark.parametrize("kind", KINDS)
async def test_the_way_is_through_a_proxy(doorman: Doorman, kind: str, login: str) -> None:
    """Which looks up the name. It is shown nothing that is the server's."""
    server = f"https://api.example:{doorman.port}"
    tls = server_tls(doorman) if kind == "https" else None
    async with Proxy(login.rstrip("@")).listening(tls) as proxy:
        url = f"{kind}://{login.replace('se', 's%65')}127.0.0.1:{proxy.port}"
        assert await ask(doorman, server=server, **{"proxy-url": url}) == 200
    assert proxy.asked == [f"{login}api.example:{doorman.port}"]
    assert doorman.who == [("", "Bearer t0")]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_proxy_of_the_environment_is_used(
    doorman: Doorman, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the kubeconfig says another, or NO_PROXY that there is none."""
    server = f"https://api.example:{doorman.port}"
    tls = server_tls(doorman) if kind == "https" else None
    async with Proxy().listening(tls) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"{kind}://127.0.0.1:{proxy.port}")
        assert await ask(doorman, server=server) == 200
        monkeypatch.setenv("NO_PROXY", "example")
        with pytest.raises(OSError):
            await ask(doorman, server=server)
        assert len(proxy.asked) == 1
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
        assert await ask(doorman, server=server, **{"proxy-url": f"{kind}://127.0.0.1:{proxy.port}"}) == 200
    assert len(proxy.asked) == 2


@pytest.mark.parametrize(
    ("url", "proxy", "why"),
    [
        ("http://ada:wrong@", Proxy("ada:secret"), "api.example:1: HTTP/1.1 407"),
        ("http://", Proxy(refuses=True), "api.example:1: HTTP/1.1 407"),
        ("socks5://ada:wrong@", Proxy("ada:secret"), "user and password are wrong"),
        ("socks5://", Proxy("ada:secret"), "it wants another login|it wants a user"),
        ("socks5://", Proxy(refuses=True), "its rules do not allow it"),
        ("socks5://ada@", Proxy("ada:secret"), "1 to 255 bytes"),
    ],
)
async def test_a_proxy_that_refuses_is_named(doorman: Doorman, url: str, proxy: Proxy, why: str) -> None:
    async with proxy.listening():
        through = {"proxy-url": f"{url}127.0.0.1:{proxy.port}"}
        with pytest.raises(OSError, match=why):
            await ask(doorman, server="https://api.example:1", **through)


async def test_a_proxy_whose_certificate_nobody_trusts_is_told_nothing(doorman: Doorman) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = doorman.authority.server("other", "other", ["other.example"])
    context.load_cert_chain(pair.certificate, pair.key)
    async with Proxy().listening(context) as proxy:
        with pytest.raises(OSError, match=r"not valid for '127\.0\.0\.1'"):
            await ask(doorman, **{"proxy-url": f"https://127.0.0.1:{proxy.port}"})
    assert proxy.asked == []


async def test_a_proxy_that_cannot_be_is_said(
    absent_doorman: Doorman, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = absent_doorman.kubeconfig({}, server="https://api.example")
    monkeypatch.setenv("HTTPS_PROXY", "http://[::1")
    with pytest.raises(KubeconfigError, match="HTTPS_PROXY"):
        kubeconfig.read(file)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("REQUEST_METHOD", "GET")
    with pytest.raises(KubeconfigError, match="REQUEST_METHOD"):
        kubeconfig.read(absent_doorman.kubeconfig({}, server="http://api.example"))


@given(host=some.text(), bypass=some.text(), port=some.integers(1, 65535))
def test_whatever_stands_there_is_read(host: str, bypass: str, port: int) -> None:
    assert is_direct(host, port, f"{bypass},*")
    assert of_environment(urlsplit("https://x.example"), {"NO_PROXY": bypass}) is None
