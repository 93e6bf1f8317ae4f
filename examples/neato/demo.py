"""The demo, step by step: what is typed, and what is waited for.

`scripts/demo.sh` sets the machine up and runs this; `tests/e2e/test_demo.py` runs it as a test; README.md
shows what it prints.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from registry import registry
from show import DemoError, Show, Terminal

from podling.machine.instance import DEFAULT_DATA_DIR, DEFAULT_PORT, Instance

REGISTRY_PORT = 5000
"""The port in the image names of neato.yaml."""

BUSYBOX = f"127.0.0.1:{REGISTRY_PORT}/busybox:1"
CTRL_C = b"\x03"
SHELL_PROMPT = r"/ # "


def main(arguments: Sequence[str]) -> int:
    chosen = _options().parse_args(arguments)
    instance = Instance.at(chosen.data_dir)
    os.chdir(Path(__file__).parents[2])
    with ExitStack() as closing:
        transcript = closing.enter_context(open(chosen.transcript, "w")) if chosen.transcript else None
        show = Show(transcript, _environment(instance))
        try:
            _demo(show, instance, chosen.port, chosen.registry_port)
        except DemoError as error:
            sys.stderr.write(f"\nThe demo stopped: {error}\npodling's log is {instance.log_file}\n")
            return 1
    _what_now(instance)
    return 0


def _demo(show: Show, instance: Instance, port: int, registry_port: int) -> None:
    show.say("podling: API server, scheduler, controllers and kubelet in one process, containerd beside it.")
    show.prompt(f"export PATH=$PWD/.venv/bin:$PATH KUBECONFIG={instance.kubeconfig}")
    _up(show, instance, port, registry_port)
    show.run("kubectl get nodes")

    work = instance.data_dir / "demo"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        show.say("Two images, built here: a static web server and nothing else, and Debian's busybox.")
        show.run(f"gcc -O2 -static -o {work}/neato examples/neato/neato.c")
        with registry(show, work, registry_port):
            show.run(f"python examples/neato/images.py {work}/neato 127.0.0.1:{registry_port}")
            _start_pod(show)
            container = _debug(show)
    finally:
        shutil.rmtree(work)
    _attach_again(show, container)
    _describe(show)


def _up(show: Show, instance: Instance, port: int, registry_port: int) -> None:
    if instance.running():
        show.run("podling status" + _where(instance))
    else:
        options = _where(instance)
        options += f" --port {port}" if port != DEFAULT_PORT else ""
        if registry_port != REGISTRY_PORT:
            options += f" --registry-mirror 127.0.0.1:{REGISTRY_PORT}=http://127.0.0.1:{registry_port}"
        show.run(f"podling up --detach{options}")


def _start_pod(show: Show) -> None:
    show.say("A pod that waits in its first init container, is configured by its second, then serves.")
    if show.ask("kubectl get pod neato --ignore-not-found -o name"):
        show.run("kubectl delete pod neato")
    show.run("kubectl apply -f examples/neato/neato.yaml")
    with show.terminal("kubectl get pod neato --watch") as watch:
        watch.wait_for(r"neato +1/1 +Running.*\n")
        watch.press(CTRL_C)
        watch.wait_for_end()
    show.run("kubectl logs neato -c wait")
    show.run("kubectl logs neato -c neato")


def _debug(show: Show) -> str:
    """The name kubectl gave to the debug container."""
    show.say("neato's image has no shell. A debug container brings one, into the running pod.")
    with show.terminal(f"kubectl debug -it neato --image={BUSYBOX} --target=neato -- sh") as shell:
        container = shell.wait_for(r"Defaulting debug container name to (\S+)\.").group(1)
        _press_enter(shell)
        _type(shell, "ps -o pid,args")
        _type(shell, "cat /proc/1/root/etc/neato/page")
        _type(shell, "wget -qO- localhost:8080")
        _type(shell, "mark='here before'")
    return container


def _attach_again(show: Show, container: str) -> None:
    show.say("That terminal was closed, but the shell lives on: attach comes back to the same one.")
    with show.terminal(f"kubectl attach -it neato -c {container}") as shell:
        _press_enter(shell)
        _type(shell, "echo I was $mark")
        shell.type("exit")
        shell.wait_for_end()


def _press_enter(shell: Terminal) -> None:
    shell.wait_for("try pressing enter")
    shell.type("")
    shell.wait_for(SHELL_PROMPT)


def _type(shell: Terminal, command: str) -> None:
    shell.type(command)
    shell.wait_for(re.escape(command) + r"\n(.*\n)*" + SHELL_PROMPT)


def _describe(show: Show) -> None:
    show.say("The pod remembers who looked, and counts only its own container.")
    show.run("kubectl describe pod neato | sed -n '/^Ephemeral/,/Mounts/p'")
    show.run("kubectl get pod neato")


def _what_now(instance: Instance) -> None:
    sys.stdout.write(
        "\nThe cluster keeps running. Now try, as root:\n"
        f"  export PATH=$PWD/.venv/bin:$PATH KUBECONFIG={instance.kubeconfig}\n"
        "  kubectl get pods --all-namespaces\n"
        f"  podling down{_where(instance)}      # ends it; the next `podling up` has all objects again\n"
    )


def _where(instance: Instance) -> str:
    return f" --data-dir {instance.data_dir}" if instance.data_dir != DEFAULT_DATA_DIR else ""


def _environment(instance: Instance) -> dict[str, str]:
    venv = Path(sys.executable).parent
    # The column widths of kubectl and podling depend on none of these, their colours and languages might.
    fixed = {"TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    path = f"{venv}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return {**os.environ, **fixed, "PATH": path, "KUBECONFIG": str(instance.kubeconfig)}


def _options() -> argparse.ArgumentParser:
    about = "Set up this machine, start podling, and show it at work."
    parser = argparse.ArgumentParser(prog="scripts/demo.sh", description=about)
    env = os.environ
    parser.add_argument("--data-dir", type=Path, default=env.get("PODLING_DATA_DIR", DEFAULT_DATA_DIR))
    parser.add_argument("--port", type=int, default=env.get("PODLING_PORT", DEFAULT_PORT))
    parser.add_argument("--registry-port", type=int, default=REGISTRY_PORT)
    parser.add_argument("--transcript", type=Path, metavar="FILE", help="write what is shown to FILE as well")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
