"""Debugging a running pod with an unmodified kubectl: the user stories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

BUSYBOX = "podling.test/busybox:1"


@pytest.fixture
def pod(podling: Any, namespace: str) -> str:
    """A web server whose process a debugger may look at; gives its namespace."""
    script = "mkdir /www; echo page > /www/index.html; exec httpd -f -p 8080 -h /www"
    container = {"name": "neato", "image": BUSYBOX, "command": ["sh", "-c", script]}
    podling.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "neato", "namespace": namespace},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
        }
    )
    ready = ("wait", "--for=condition=Ready", "pod/neato", "-n", namespace, "--timeout=60s")
    podling.kubectl(*ready, timeout=70)
    return namespace


def debug(podling: Any, namespace: str, *arguments: str) -> str:
    """Run a debug container to its end; what it printed."""
    flags = ("-n", namespace, f"--image={BUSYBOX}", "--profile=general", "-c", "debugger", "-q")
    podling.kubectl("debug", "neato", *flags, *arguments)
    ended = "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.reason}=Completed"
    podling.kubectl("wait", f"--for={ended}", "pod/neato", "-n", namespace, "--timeout=45s")
    printed: str = podling.kubectl("logs", "neato", "-c", "debugger", "-n", namespace).stdout
    return printed


def test_operations_looks_at_processes_files_and_network(podling: Any, pod: str) -> None:
    """R-CLI-5: the target's process, its files through /proc/PID/root, and a request from its network."""
    script = "ps; cat /proc/1/root/www/index.html; wget -q -O - http://127.0.0.1:8080/"
    printed = debug(podling, pod, "--target=neato", "--", "sh", "-c", script)
    assert "httpd -f -p 8080" in printed
    assert printed.endswith("page\npage\n")


def test_debugging_enters_the_target_with_a_busybox_of_its_own(
    podling: Any, pod: str, tmp_path: Path
) -> None:
    """R-CLI-5: SYS_ADMIN and SYS_PTRACE let a debugger copy its tools in and enter all namespaces."""
    custom = tmp_path / "custom.json"
    add = ["SYS_ADMIN", "SYS_PTRACE", "SYS_CHROOT"]
    custom.write_text(json.dumps({"securityContext": {"capabilities": {"add": add}}}))
    enter = "nsenter -t 1 -m -u -n -i /tools/busybox sh -c"
    script = f"mkdir /proc/1/root/tools; cp /bin/busybox /proc/1/root/tools; {enter} 'ls /www; id -u'"
    flags = ("--target=neato", f"--custom={custom}")
    assert debug(podling, pod, *flags, "--", "sh", "-c", script) == "index.html\n0\n"


def test_a_debugger_may_be_privileged_in_a_pod_that_is_not(podling: Any, pod: str) -> None:
    """R-EPH-2."""
    script = "mkdir -p /mnt; mount -t tmpfs none /mnt && echo mounted"
    assert debug(podling, pod, "--profile=sysadmin", "--", "sh", "-c", script) == "mounted\n"
