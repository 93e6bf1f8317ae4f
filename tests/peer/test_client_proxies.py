"""Which proxies kubectl uses, and which the commands here: the same."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from podling.client import kubeconfig
from podling.client.kubeconfig import KubeconfigError
from podling.client.proxies import of_environment
from proxy import Proxy, running

HTTPS, NO = "HTTPS_PROXY", "NO_PROXY"
P = "127.0.0.1:{port}"
BYPASSES = [
    "",
    "*",
    "*,x",
    "x*",
    "example",
    ".example",
    "*.example",
    "api.example",
    ".api.example",
    "*.api.example",
    "xample",
    "API.Example",
    " api.example , x",
    "api.example:6443",
    "api.example:443",
    ".example:6443",
    "*.example:443",
    ":6443",
    "api.example:",
    "240.0.0.1",
    "240.0.0.1:6443",
    "240.0.0.1:443",
    "240.0.0.0/8",
    "240.0.0.1/8",
    "240.0.0.0/8:6443",
    "::ffff:240.0.0.1",
    "2001:db8::1",
    "[2001:db8::1]",
    "[2001:db8::1]:6443",
    "[2001:db8::1]:443",
    "2001:db8::/32",
    "240.0.0.0/33",
    ",,",
]
HOSTS = ["api.example", "example", "240.0.0.1", "[2001:db8::1]"]
SERVERS = ["localhost", "127.9.9.9", "[::1]", "sub.localhost"]
CASES = [
    *((f"https://{host}:6443", {HTTPS: P, NO: bypass}) for host in HOSTS for bypass in BYPASSES),
    *((f"https://{host}:1", {HTTPS: P}) for host in SERVERS),
    ("https://api.example", {HTTPS: P, NO: "api.example:443"}),
    ("https://api.example:6443", {HTTPS: "http://" + P}),
    ("https://api.example:6443", {HTTPS: "ftp://" + P}),
    ("https://api.example:6443", {HTTPS: "socks5://" + P}),
    ("https://api.example:6443", {HTTPS: "socks5h://" + P}),
    ("https://api.example:6443", {HTTPS: "upper@" + P, "https_proxy": "lower@" + P}),
    ("https://api.example:6443", {"https_proxy": "lower@" + P}),
    ("https://api.example:6443", {"ALL_PROXY": P}),
    ("https://api.example:6443", {"HTTP_PROXY": P}),
    ("https://api.example:6443", {HTTPS: P, "no_proxy": "example"}),
    ("https://api.example:6443", {HTTPS: P, NO: "x", "no_proxy": "example"}),
]
URLS = ["http://p:1", "https://p:1", "socks5://p:1", "socks5h://p:1", "socks4://p:1", "ftp://p:1", "p:1", "p"]


@pytest.fixture(scope="module")
def kubectl(kubernetes_programs: Path) -> str:
    return str(kubernetes_programs / "kubectl")


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with running(Proxy(refuses=True)) as made:
        yield made


def written(file: Path, **cluster: str) -> Path:
    document = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(yaml.safe_dump(document))
    return file


def asks(kubectl: str, file: Path, environment: dict[str, str]) -> str:
    """kubectl's error."""
    command = [kubectl, "--kubeconfig", str(file), "get", "--raw", "/api", "--request-timeout=2s"]
    quiet = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(command, capture_output=True, text=True, env={**quiet, **environment}, check=False)
    return done.stderr


def test_the_environment_is_read_as_kubectl_reads_it(kubectl: str, proxy: Proxy, tmp_path: Path) -> None:
    """Each case asks the proxy as a user of its own."""

    def way(number: int) -> str:
        server, told = CASES[number]
        environment = {
            name: value if name.lower() == "no_proxy" else _by(value.format(port=proxy.port), number)
            for name, value in told.items()
        }
        asks(kubectl, written(tmp_path / f"{number}.conf", server=server), environment)
        url = urlsplit(server)
        found = of_environment(url, environment)
        return f"{found.username}:x@{url.hostname}:{url.port or 443}" if found else ""

    with ThreadPoolExecutor(4) as threads:
        ours = [*threads.map(way, range(len(CASES)))]
    theirs = {place.replace("[", "").replace("]", "") for place in proxy.asked}
    assert theirs == set(filter(None, ours))


def _by(url: str, number: int) -> str:
    scheme, found, rest = url.rpartition("://")
    user, _, place = rest.rpartition("@")
    return f"{scheme}{found or 'http://'}case{number}{user}:x@{place}"


@pytest.mark.parametrize("url", URLS)
def test_what_kubectl_takes_for_a_proxy_of_a_cluster_is_taken(kubectl: str, url: str, tmp_path: Path) -> None:
    file = written(tmp_path / "config", server="https://api.example", **{"proxy-url": url})
    is_refused = "invalid 'proxy-url'" in asks(kubectl, file, {})
    try:
        kubeconfig.read(file)
    except KubeconfigError as error:
        assert is_refused, error
    else:
        assert not is_refused
