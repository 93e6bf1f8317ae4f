"""A registry for as long as the demo needs one: Debian's docker-registry on loopback, with its files in one
directory."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from show import DemoError, Show

CONFIGURATION = """\
version: 0.1
log: {{level: info, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {directory}/registry}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@contextmanager
def registry(show: Show, directory: Path, port: int) -> Iterator[None]:
    """Raises DemoError with what the registry said when it does not start."""
    configuration = directory / "registry.yml"
    configuration.write_text(CONFIGURATION.format(directory=directory, port=port))
    show.prompt(f"docker-registry serve {configuration} &")
    process = subprocess.Popen(
        ["docker-registry", "serve", str(configuration)],
        env={**show.env, "OTEL_TRACES_EXPORTER": "none"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _wait_until_listening(process, port)
        yield
    finally:
        process.terminate()
        process.communicate()


def _wait_until_listening(process: subprocess.Popen[str], port: int) -> None:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if "listening on" in line:
            return
    raise DemoError(f"no registry on port {port} (choose another with --registry-port): {said}")
