"""Debugging a running pod with an unmodified kubectl: nothing printed is lost, and the user stories."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

BUSYBOX = "podling.test/busybox:1"
RUNS = 25
AT_ONCE = 4


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


def debug(podling: Any, namespace: str, *arguments: str, **options: Any) -> Any:
    flags = ("-n", namespace, f"--image={BUSYBOX}", "--profile=general")
    return podling.kubectl("debug", "neato", *flags, *arguments, timeout=45, **options)


@pytest.mark.parametrize("flags", [("-i",), ("-i", "-t")], ids=["pipe", "terminal"])
def test_no_output_of_a_one_shot_is_lost(podling: Any, pod: str, flags: tuple[str, ...]) -> None:
    """R-CLI-3: a stock cluster loses what is printed before the attach."""

    def one(number: int) -> str:
        script = f"echo first {number}; echo last {number}"
        return str(debug(podling, pod, "-q", *flags, "--", "sh", "-c", script, input="").stdout)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        printed = [text.replace("\r", "") for text in pool.map(one, range(RUNS))]
    assert printed == [f"first {number}\nlast {number}\n" for number in range(RUNS)]


def test_commands_piped_into_a_shell_answer_all(podling: Any, pod: str) -> None:
    done = debug(
        podling, pod, "-q", "-i", "--target=neato", "--", "sh", input="echo first; sleep 1; echo last; exit\n"
    )
    assert done.stdout == "first\nlast\n"


def test_operations_looks_at_processes_files_and_network(podling: Any, pod: str) -> None:
    """R-CLI-5: the target's process, its files through /proc/PID/root, and a request from its network."""
    script = "ps; cat /proc/1/root/www/index.html; wget -q -O - http://127.0.0.1:8080/"
    done = debug(podling, pod, "-q", "-i", "--target=neato", "--", "sh", "-c", script)
    assert "httpd -f -p 8080" in done.stdout
    assert done.stdout.endswith("page\npage\n")


def test_debugging_enters_the_target_with_a_busybox_of_its_own(
    podling: Any, pod: str, tmp_path: Path
) -> None:
    """R-CLI-5: SYS_ADMIN and SYS_PTRACE let a debugger copy its tools in and enter all namespaces."""
    custom = tmp_path / "custom.json"
    add = ["SYS_ADMIN", "SYS_PTRACE", "SYS_CHROOT"]
    custom.write_text(json.dumps({"securityContext": {"capabilities": {"add": add}}}))
    enter = "nsenter -t 1 -m -u -n -i /tools/busybox sh -c"
    script = f"mkdir /proc/1/root/tools; cp /bin/busybox /proc/1/root/tools; {enter} 'ls /www; id -u'"
    flags = ("-q", "-i", "--target=neato", f"--custom={custom}")
    done = debug(podling, pod, *flags, "--", "sh", "-c", script, input="")
    assert done.stdout == "index.html\n0\n"


def test_a_debugger_may_be_privileged_in_a_pod_that_is_not(podling: Any, pod: str) -> None:
    """R-EPH-2."""
    script = "mkdir -p /mnt; mount -t tmpfs none /mnt && echo mounted"
    done = debug(podling, pod, "-q", "-i", "--profile=sysadmin", "--", "sh", "-c", script, input="")
    assert done.stdout == "mounted\n"
