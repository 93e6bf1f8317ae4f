"""What each command imports, and computes, until its first line.

    python scripts/first_line.py [COMMAND...]

Each command runs in a process of its own, with an empty data directory, and is ended when it writes its first
line: nothing is started. Milliseconds are those of the processor, so that they say little of what else the
machine does. `tests/unit/cli/test_first_line.py` has the most that each may take.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from podling.assemble.kubeconfigs import grant_node
from podling.machine.instance import Instance

COMMANDS = {
    "--help": "",
    "--version": "",
    "up --help": "",
    "apiserver": "--port {port}",
    "audit debugged": "",
    "backup": "{data}/backup.tar",
    "capture": "--kubeconfig {kubeconfig} web",
    "controllers": "--kubeconfig {kubeconfig}",
    "cp": "--kubeconfig {kubeconfig} web:/etc/hosts {data}/hosts",
    "debug --help": "",
    "debug": "--kubeconfig {kubeconfig} web",
    "dns": "--kubeconfig {kubeconfig} --address 127.0.0.1 --port {port}",
    "doctor": "",
    "down": "",
    "feature-gates": "",
    "images list": "",
    "join": "127.0.0.1:{port} --token abcdef.0123456789abcdef --ca-hash sha256:" + 64 * "0",
    "kubeconfig": "--node node {data}/node.conf",
    "kubelet": "--kubeconfig {kubeconfig} --port {port}",
    "leave": "",
    "logs": "--kubeconfig {kubeconfig} web",
    "migrate-storage": "--to etcd --etcd-servers http://127.0.0.1:{port}",
    "network": "--kubeconfig {kubeconfig}",
    "policies explain": "a b 80 --kubeconfig {kubeconfig}",
    "restore": "{kubeconfig}",
    "scheduler": "--kubeconfig {kubeconfig}",
    "services explain": "--kubeconfig {kubeconfig} web",
    "sessions": "--kubeconfig {kubeconfig}",
    "status": "",
    "token list": "--kubeconfig {kubeconfig}",
    "up": "--port {port}",
    "why": "--kubeconfig {kubeconfig} web",
}
"""Command → its arguments."""

UNTIL_IT_WRITES = """
import io, json, os, sys, time

class FirstLine(io.TextIOWrapper):
    def write(self, text):
        rooms = sorted({name.split(".")[1] for name in sys.modules if name.startswith("podling.")})
        told = {"modules": len(sys.modules), "ms": time.process_time() * 1000, "rooms": rooms}
        os.write(1, json.dumps(told).encode())
        os._exit(0)

sys.stdout = sys.stderr = FirstLine(io.BytesIO(), "utf-8")
from podling.cli.main import main
main(prog_name="podling")
"""


class Measured(NamedTuple):
    """`modules` are all that Python had loaded; `rooms` those directly below `src/podling/`."""

    modules: int
    ms: float
    rooms: list[str]


def measure(command: str, directory: Path) -> Measured:
    """Run `command` until its first line. `directory` is empty before, and gone after."""
    data, file = directory / "data", directory / "node.conf"
    instance = Instance.at(data)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = COMMANDS[command].format(data=data, port=port, kubeconfig=file).split()
    if str(file) in arguments:
        grant_node(Instance.at(directory), "node", f"https://127.0.0.1:{port}", file)
    try:
        done = subprocess.run(
            [sys.executable, "-c", UNTIL_IT_WRITES, *command.split(), *arguments],
            env={**os.environ, "PODLING_DATA_DIR": str(data)},
            capture_output=True,
            check=True,
        )
    finally:
        # What a start claims until the end of its podling.
        if data.exists():
            instance.release_subnet()
            shutil.rmtree(instance.run_dir, ignore_errors=True)
    return Measured(**json.loads(done.stdout))


def main(commands: list[str]) -> None:
    lines = ["| command | modules | CPU, ms | rooms |", "|---|---|---|---|"]
    for command in commands or COMMANDS:
        with tempfile.TemporaryDirectory(prefix="podling-") as name:
            found = measure(command, Path(name))
        lines.append(f"| {command} | {found.modules} | {found.ms:.0f} | {' '.join(found.rooms)} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
