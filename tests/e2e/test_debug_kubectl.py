"""Debugging a running pod with an unmodified kubectl: nothing printed is lost, and the user stories."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podling.cri.images.build import ImageConfig, Symlink, build_image

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
STRACE, GDB, WORKER = "podling.test/strace:1", "podling.test/gdb:1", "podling.test/worker:1"
DOCUMENT = Path(__file__).parents[2] / "docs" / "debugging.md"
PATH = "PATH=/bin:/usr/bin"
AT_ONCE = 4
PATIENCE = 60.0
"""Seconds until a terminal on which nothing more appears is given up."""

Load = Callable[[str, Mapping[str, str]], str]


@pytest.fixture
def pod(podling: Podling, namespace: str) -> str:
    """A web server whose process a debugger may look at; gives its namespace."""
    script = "mkdir /www; echo page > /www/index.html; exec httpd -f -p 8080 -h /www"
    make_pod(podling, namespace, [{"name": "neato", "image": BUSYBOX, "command": ["sh", "-c", script]}])
    return namespace


def make_pod(
    podling: Podling, namespace: str, containers: list[Any], name: str = "neato", **spec: Any
) -> None:
    podling.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": containers, **spec},
        }
    )
    ready = ("wait", "--for=condition=Ready", f"pod/{name}", "-n", namespace, "--timeout=60s")
    podling.kubectl(*ready, timeout=70)


def debug(podling: Podling, namespace: str, *arguments: str, image: str = BUSYBOX) -> str:
    """Run a debug container to its end; what it printed."""
    flags = ("-n", namespace, f"--image={image}", "--profile=general", "-c", "debugger", "-q")
    podling.kubectl("debug", "neato", *flags, *arguments)
    ended = "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.reason}=Completed"
    podling.kubectl("wait", f"--for={ended}", "pod/neato", "-n", namespace, "--timeout=45s")
    printed: str = podling.kubectl("logs", "neato", "-c", "debugger", "-n", namespace).stdout
    return printed


def interactive(podling: Podling, namespace: str, *arguments: str, input: str = "") -> str:
    """What a debug container and its client print until both have ended, a terminal's line ends aside."""
    flags = ("-n", namespace, f"--image={BUSYBOX}", "--profile=general", "-q", "-i")
    done = podling.kubectl("debug", "neato", *flags, *arguments, timeout=120, input=input)
    # Shown with a failure: it says why there is no output.
    sys.stderr.write(done.stderr)
    return str(done.stdout).replace("\r", "")


def converse(command: list[str], environment: Mapping[str, str], prompt: str, typed: list[str]) -> str:
    """What a terminal shows until its program ends, whose user types the next line at every prompt."""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (50, 160))
    lines, shown, asked = iter(typed), "", 0
    with subprocess.Popen(command, env=environment, stdin=slave, stdout=slave, stderr=slave) as program:
        os.close(slave)
        # Reading the terminal of a program that has ended is an input/output error.
        with suppress(OSError):
            while select.select([master], [], [], PATIENCE)[0]:
                shown += os.read(master, 65536).decode().replace("\r", "")
                if prompt in shown[asked:] and (line := next(lines, None)) is not None:
                    asked = len(shown)
                    os.write(master, f"{line}\r".encode())
        os.close(master)
        if program.poll() is None:
            program.kill()
    return shown


@pytest.mark.parametrize(("flags", "runs"), [((), 100), (("-t",), 20)], ids=["pipe", "terminal"])
def test_no_output_of_a_one_shot_is_lost(
    podling: Podling, pod: str, flags: tuple[str, ...], runs: int
) -> None:
    """R-CLI-3: a stock cluster loses what is printed before the attach."""

    def one(number: int) -> str:
        script = f"echo first {number}; echo last {number}"
        return interactive(podling, pod, *flags, "--", "sh", "-c", script)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        printed = list(pool.map(one, range(runs)))
    assert printed == [f"first {number}\nlast {number}\n" for number in range(runs)]


def test_commands_piped_into_a_shell_answer_all(podling: Podling, pod: str) -> None:
    typed = "echo first; sleep 1; echo last; exit\n"
    assert interactive(podling, pod, "--target=neato", "--", "sh", input=typed) == "first\nlast\n"


def test_operations_looks_at_processes_files_and_network(podling: Podling, pod: str) -> None:
    """R-CLI-5: the target's process, its files through /proc/PID/root, and a request from its network."""
    script = "ps; cat /proc/1/root/www/index.html; wget -q -O - http://neato:8080/"
    printed = debug(podling, pod, "--target=neato", "--", "sh", "-c", script)
    assert "httpd -f -p 8080" in printed
    assert printed.endswith("page\npage\n"), "its name is known, and answers"


def test_operations_asks_names_from_the_pods_network(podling: Podling, namespace: str) -> None:
    """R-CLI-5: a debug container has the pod's resolver, hosts and addresses, and is taken for the pod."""
    script = "mkdir /www; echo page > /www/index.html; exec httpd -f -p 8080 -h /www"
    more: dict[str, Any] = {"hostAliases": [{"ip": "192.0.2.7", "hostnames": ["elsewhere"]}]}
    make_pod(
        podling, namespace, [{"name": "neato", "image": BUSYBOX, "command": ["sh", "-c", script]}], **more
    )
    podling.kubectl("label", "pod", "neato", "-n", namespace, "app=neato")
    podling.kubectl(
        "expose", "pod", "neato", "-n", namespace, "--name=shop", "--port=8080", "--cluster-ip=None"
    )
    address = podling.get("pod", "neato", "-n", namespace)["status"]["podIP"]
    own = "cat /etc/resolv.conf /etc/hosts; hostname; ip -o -f inet address; ip route"
    seen = podling.kubectl("exec", "neato", "-n", namespace, "--", "sh", "-c", own).stdout
    assert f"search {namespace}.svc.cluster.local" in seen and "elsewhere" in seen and address in seen
    name = f"shop.{namespace}.svc.cluster.local"
    looks_up = f"nslookup {name}; wget -q -O - http://shop:8080/; wget -q -O - http://localhost:8080/"
    printed = debug(podling, namespace, "--target=neato", "--", "sh", "-c", f"{own}; {looks_up}")
    assert printed.startswith(seen)
    assert re.search(rf"Name:\s+{name}\nAddress.*: {address}\n", printed), printed
    assert printed.endswith("page\npage\n")


def test_operations_sees_all_of_a_pod_that_shares_its_processes(podling: Podling, namespace: str) -> None:
    """R-CLI-5, R-EPH-4: no target is needed, nor does one hide the others."""
    containers = [
        {"name": name, "image": BUSYBOX, "command": ["sleep", seconds]}
        for name, seconds in (("one", "1001"), ("two", "1002"))
    ]
    make_pod(podling, namespace, containers, shareProcessNamespace=True)
    printed = debug(podling, namespace, "--", "ps")
    assert "sleep 1001" in printed and "sleep 1002" in printed


def test_operations_sees_only_the_target_of_a_pod_that_does_not(podling: Podling, namespace: str) -> None:
    """R-CLI-5, R-EPH-4."""
    containers = [
        {"name": name, "image": BUSYBOX, "command": ["sleep", seconds]}
        for name, seconds in (("one", "1001"), ("two", "1002"))
    ]
    make_pod(podling, namespace, containers)
    printed = debug(podling, namespace, "--target=two", "--", "ps")
    assert "sleep 1002" in printed and "sleep 1001" not in printed


def test_debugging_enters_the_target_with_a_busybox_of_its_own(
    podling: Podling, pod: str, tmp_path: Path
) -> None:
    """R-CLI-5: SYS_ADMIN and SYS_PTRACE let a debugger copy its tools in and enter all namespaces."""
    custom = tmp_path / "custom.json"
    add = ["SYS_ADMIN", "SYS_PTRACE", "SYS_CHROOT"]
    custom.write_text(json.dumps({"securityContext": {"capabilities": {"add": add}}}))
    enter = "nsenter -t 1 -m -u -n -i /tools/busybox sh -c"
    script = f"mkdir /proc/1/root/tools; cp /bin/busybox /proc/1/root/tools; {enter} 'ls /www; id -u'"
    flags = ("--target=neato", f"--custom={custom}")
    assert debug(podling, pod, *flags, "--", "sh", "-c", script) == "index.html\n0\n"


def test_a_debugger_may_be_privileged_in_a_pod_that_is_not(podling: Podling, pod: str) -> None:
    """R-EPH-2."""
    script = "mkdir -p /mnt; mount -t tmpfs none /mnt && echo mounted"
    assert debug(podling, pod, "--profile=sysadmin", "--", "sh", "-c", script) == "mounted\n"


def test_what_the_documentation_shows_works(podling: Podling, pod: str) -> None:
    """The shells of docs/debugging.md, as they stand there."""
    blocks = re.findall(r"```console\n(.+?)\n```", DOCUMENT.read_text(), re.DOTALL)
    shown = [block for block in blocks if "kubectl debug -" in block]
    assert len(shown) == 2
    environment = {**os.environ, "KUBECONFIG": kubeconfig_of(podling, pod)}
    for command in shown:
        words = {"POD": "neato", "=IMAGE": f"={BUSYBOX}", "=CONTAINER": "=neato"}
        for placeholder, word in words.items():
            command = command.replace(placeholder, word)
        done = subprocess.run(
            ["script", "-qec", command, "/dev/null"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            input="ps; exit\n",
        )
        assert "httpd -f -p 8080" in done.stdout


@pytest.fixture(scope="module")
def load(podling: Podling, tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Makes a debug image of files of this machine and of busybox's commands, and gives its name."""

    def make(reference: str, files: Mapping[str, str]) -> str:
        busybox = Path(shutil.which("busybox") or "/bin/busybox")
        tools = {f"bin/{name}": Symlink("busybox") for name in ("sh", "grep", "wget", "kill", "sleep")}
        content = {path.lstrip("/"): Path(file).resolve() for path, file in files.items()}
        config = ImageConfig(env=[PATH])
        archive = tmp_path_factory.mktemp("image") / "image.tar"
        archive.write_bytes(build_image(reference, {**content, **tools, "bin/busybox": busybox}, config))
        podling.command("images", "load", str(archive))
        return reference

    return make


def with_libraries(program: str) -> dict[str, str]:
    """The files of an installed program that it needs to start, where they are."""
    path = shutil.which(program)
    assert path, "scripts/setup.sh test installs it"
    linked = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
    return {file: file for file in (path, *linked.split()) if file.startswith("/")}


@pytest.fixture(scope="module")
def strace_image(load: Load) -> str:
    return load(STRACE, with_libraries("strace"))


@pytest.fixture(scope="module")
def gdb_image(load: Load) -> str:
    """gdb, and what of Python it has loaded when it has started; Debian's gdb-minimal has none."""
    listing = "import sys; [print(m.__file__) for m in sys.modules.values() if getattr(m, '__file__', None)]"
    asked = ["gdb", "-nx", "-batch", "-ex", f"python {listing}"]
    environment = {**os.environ, "LC_ALL": "C"}
    said = subprocess.run(asked, env=environment, check=False, capture_output=True, text=True).stdout
    modules = {line: line for line in said.splitlines() if line.startswith("/")}
    return load(GDB, {**with_libraries("gdb"), **modules})


@pytest.fixture(scope="module")
def worker_image(load: Load, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program of two threads that does nothing, and knows its own names."""
    directory = tmp_path_factory.mktemp("worker")
    (directory / "worker.c").write_text(
        """
        #include <pthread.h>
        #include <unistd.h>
        int orders = 41;
        void *tend_shop(void *none) { for (;;) pause(); }
        void await_orders(void) { for (;;) pause(); }
        int main(void) { pthread_t t; pthread_create(&t, 0, tend_shop, 0); await_orders(); }
        """
    )
    program = directory / "worker"
    compiler = ["gcc", "-g", "-O0", "-static", "-pthread", "-o", str(program), str(directory / "worker.c")]
    subprocess.run(compiler, check=True)
    return load(WORKER, {"bin/worker": str(program)})


def test_debugging_attaches_a_debugger_to_the_target(podling: Podling, pod: str, strace_image: str) -> None:
    """R-CLI-5."""
    traced = "until grep -q 'TracerPid:.[1-9]' /proc/1/status; do sleep 0.01; done"
    script = f"strace -p 1 & {traced}; wget -q -O - http://127.0.0.1:8080/; kill -INT $!; wait"
    printed = debug(podling, pod, "--target=neato", "--", "sh", "-c", script, image=strace_image)
    assert "accept" in printed and "page\n" in printed


def test_debugging_attaches_gdb_to_the_target(
    podling: Podling, namespace: str, gdb_image: str, worker_image: str
) -> None:
    """R-CLI-5: its threads, where they are, and its variables; let go of, the target runs on."""
    make_pod(podling, namespace, [{"name": "worker", "image": worker_image, "command": ["worker"]}])
    kubectl = f"kubectl debug -it neato -q --image={gdb_image} --profile=general --target=worker"
    gdb = "gdb -q -nx -p 1 /proc/1/root/bin/worker"
    typed = [
        *("set style enabled off", "set pagination off"),
        *("thread apply all backtrace", "print orders", "info registers", "detach", "quit"),
    ]
    environment = {**os.environ, "KUBECONFIG": kubeconfig_of(podling, namespace)}
    said = converse([*kubectl.split(), "--", *gdb.split()], environment, "(gdb) ", typed)
    assert re.search(r"Thread 2 .*tend_shop \(.*await_orders \(.*main \(", said, re.DOTALL), said
    assert "$1 = 41" in said and re.search(r"^rip +0x[0-9a-f]+", said, re.MULTILINE), said
    assert "[Inferior 1 (process 1) detached]" in said
    flags = ("-n", namespace, "-c", "worker", "--")
    state = podling.kubectl("exec", "neato", *flags, "grep", "-E", "^(State|TracerPid)", "/proc/1/status")
    assert state.stdout == "State:\tS (sleeping)\nTracerPid:\t0\n"
    status = podling.get("pod", "neato", "-n", namespace)["status"]["containerStatuses"][0]
    assert status["ready"] and status["restartCount"] == 0


def test_automation_audits_every_pod_in_a_loop(podling: Podling, namespace: str) -> None:
    """R-CLI-5."""
    for name in ("first", "second", "third"):
        container = {
            "name": "app",
            "image": BUSYBOX,
            "command": ["sleep", "1000"],
            "env": [{"name": "A", "value": name}],
        }
        make_pod(podling, namespace, [container], name)
    audit = "tr '\\0' '\\n' < /proc/1/environ | grep ^A="
    flags = f"-q -i --image={BUSYBOX} --target=app --profile=general"
    loop = f'for pod in $(kubectl get pods -o name); do kubectl debug $pod {flags} -- sh -c "{audit}"; done'
    environment = {**os.environ, "KUBECONFIG": kubeconfig_of(podling, namespace)}
    done = subprocess.run(
        ["bash", "-euc", loop],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout.split() == ["A=first", "A=second", "A=third"]


def kubeconfig_of(podling: Podling, namespace: str) -> str:
    """A kubeconfig whose namespace is this."""
    path = podling.instance.data_dir / f"{namespace}.kubeconfig"
    shutil.copyfile(podling.instance.kubeconfig, path)
    context = ("config", "set-context", "--current", f"--namespace={namespace}", "--kubeconfig", str(path))
    subprocess.run(["kubectl", *context], check=True, capture_output=True)
    return str(path)


def test_kubectl_debug_returns_when_its_container_cannot_run_and_says_why(podling: Podling, pod: str) -> None:
    """R-EPH-15: a command that is not there, and a pod that has ended."""
    done = ("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/done", "-n", pod, "--timeout=60s")
    container = {"name": "app", "image": BUSYBOX, "command": ["true"]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    podling.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "done", "namespace": pod}, "spec": spec}
    )
    podling.kubectl(*done, timeout=70)
    flags = ("-n", pod, "-i", f"--image={BUSYBOX}", "--profile=general", "-c", "debugger")
    said = podling.kubectl("debug", "neato", *flags, "--", "nosuch", timeout=30)
    assert 'exec: "nosuch": executable file not found in $PATH' in said.stdout
    late = podling.kubectl("debug", "done", *flags, "--", "true", timeout=30, check=False)
    assert late.returncode == 1
    assert 'container "debugger" in pod "done" is terminated' in late.stderr
    ended = {}
    for name in ("neato", "done"):
        (shown,) = podling.get("pod", name, "-n", pod)["status"]["ephemeralContainerStatuses"]
        ended[name] = shown["state"]["terminated"]
    assert [(one["exitCode"], one["reason"]) for one in ended.values()] == [
        (128, "StartError"),
        (128, "ContainerCannotRun"),
    ]
