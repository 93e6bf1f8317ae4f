"""Commands for any cluster run where podling's servers do not, such as on macOS: what only servers need is
marked for Linux, and nothing of it is imported by these commands.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

from podling.assemble.kubeconfigs import grant_node
from podling.machine.instance import Instance

ROOT = Path(__file__).parents[3]
DEPENDENCIES = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
EVERYWHERE = {"click", "msgspec", "PyYAML", "tzdata"}
"""What the commands need."""
MODULES = {"click", "msgspec", "yaml"}
LINUX = "; sys_platform == 'linux'"
BLOCKED = """
import select
del select.epoll
import importlib.metadata, sys
sys.path = [path for path in sys.path if path]
own = {own}
ours = importlib.metadata.packages_distributions()
# Of the standard library what macOS has not.
missing = {{"spwd", "ossaudiodev", "nis"}}
class Blocked:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in missing or (top in ours and top not in own and top not in ("podling", "typing_extensions")):
            raise ImportError(f"{{name}} is not there on macOS")
        return None
sys.meta_path.insert(0, Blocked())
import os, socket
for name in ("sendfile", "eventfd", "pidfd_open", "memfd_create", "copy_file_range", "splice"):
    if hasattr(os, name): delattr(os, name)
for name in ("TCP_KEEPIDLE", "TCP_USER_TIMEOUT", "SO_PEERCRED"):
    if hasattr(socket, name): delattr(socket, name)
"""


def run(code: str) -> str:
    blocked = BLOCKED.format(own=repr(MODULES))
    done = subprocess.run([sys.executable, "-c", blocked + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_servers_alone_need_is_marked_for_linux() -> None:
    for line in DEPENDENCIES:
        name = line.partition("==")[0]
        assert line.endswith(LINUX) == (name not in EVERYWHERE), line


def test_a_command_for_any_cluster_needs_nothing_of_linux(tmp_path: Path) -> None:
    """The help of each, and a run to the point where the cluster cannot be reached; all in one process, from
    which the same is missing for all."""
    config = tmp_path / "config"
    config.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c}}], "
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}"
    )
    more = {
        "debug": ["web", "--", "true"],
        "why": ["web"],
        "capture": ["web"],
        "cp": ["web:/a", "b"],
        "logs": ["-f", "web"],
        "sessions": [],
    }
    runs = [[command, "--kubeconfig", str(config), *words] for command, words in more.items()]
    code = f"""
from podling.cli.main import main
import io, contextlib, json
told = []
for words in {[*([command, "--help"] for command in more), *runs]!r}:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            main(words)
    except SystemExit as end:
        told.append(f"{{end.code}} {{said.getvalue()}}")
print(json.dumps(told))
"""
    told = json.loads(run(code))
    for command, said in zip(more, told[: len(more)], strict=True):
        assert said.startswith("0 ") and f"{command} [OPTIONS]" in said
    for command, said in zip(more, told[len(more) :], strict=True):
        assert said.startswith("1 Error: http://127.0.0.1:1: "), command


def test_everything_that_such_a_command_may_import_is_there() -> None:
    """Also what it imports only once it is connected, or for a login, a proxy, a fleet or a question."""
    code = """
import pkgutil, importlib, podling.remote, podling.debug
for package in (podling.remote, podling.debug):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
for room, names in {
    "client": "dial exec_plugin https kubeconfig login oidc proxies tls tunnel",
    "cli": "capture choosing cluster cp debug debug_modes debug_options fleet logs sessions tables why",
    "streaming": "driver negotiation session upgrade wire spdy.connection websocket.channels",
}.items():
    for name in names.split():
        importlib.import_module(f"podling.{room}.{name}")
print("imported")
"""
    assert run(code) == "imported\n"


def test_until_its_first_request_a_command_imports_little(tmp_path: Path) -> None:
    """For a kubeconfig as kubectl writes it, with a certificate. What reads the answer comes after it."""
    config = tmp_path / "admin.conf"
    grant_node(Instance.at(tmp_path), "node", "https://127.0.0.1:1", config)
    code = f"""
from podling.cli.main import main
import sys
try:
    main(["debug", "web", "--kubeconfig", {str(config)!r}])
except SystemExit:
    late = "asyncio h11 logging random shutil tempfile wsproto yaml".split()
    print([*(name for name in late if name in sys.modules)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert "127.0.0.1:1" in done.stderr


def test_until_its_container_is_added_a_command_has_no_event_loop(tmp_path: Path) -> None:
    """asyncio is imported while the container starts; this one is refused after its dry run."""
    spec = {"containers": [{"name": "app", "image": "app"}]}
    pod = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    namespace = {"metadata": {"name": "default"}}
    refused = {"kind": "Status", "code": 409, "reason": "Conflict", "message": "not any more"}
    asked: list[str] = []

    def serve() -> None:
        peer, _ = server.accept()
        with peer:
            for code, answer in ((200, pod), (200, namespace), (200, pod), (409, refused)):
                asked.append(peer.recv(65536).partition(b" HTTP")[0].decode())
                body = json.dumps(answer).encode()
                peer.sendall(f"HTTP/1.1 {code} x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    with socket.create_server(("127.0.0.1", 0)) as server:
        cluster = {"server": f"http://127.0.0.1:{server.getsockname()[1]}"}
        config = tmp_path / "config"
        config.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                    "current-context": "c",
                }
            )
        )
        code = f"""
from podling.cli.main import main
import sys
try:
    main(["debug", "web", "--kubeconfig", {str(config)!r}, "--", "true"])
except SystemExit:
    print("asyncio" in sys.modules)
"""
        serving = threading.Thread(target=serve)
        serving.start()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        serving.join()
    assert done.stdout == "False\n"
    assert done.stderr.endswith("Error: not any more (Conflict)\n")
    assert [line.partition("?")[0] for line in asked] == [
        "GET /api/v1/namespaces/default/pods/web",
        "GET /api/v1/namespaces/default",
        *["PATCH /api/v1/namespaces/default/pods/web/ephemeralcontainers"] * 2,
    ]
