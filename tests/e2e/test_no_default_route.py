"""R-SYS-2: all of `podling up` on a machine that has no route to others: services lead, names resolve, pods
run; and after `podling down` the network is as it was.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from netns import apart

from .conftest import run
from .test_in_cluster import BUSYBOX, job

if TYPE_CHECKING:
    from e2e.conftest import Podling

ASK = """
nslookup kubernetes.default.svc.cluster.local
its=$(nslookup kubernetes.default.svc.cluster.local | sed -n 's/^Address: *//p' | tail -1)
nc -w 5 $its 443 </dev/null && echo reached
"""


def network() -> dict[str, str]:
    """What `podling up` may change of a network."""
    commands = {
        "links": ["ip", "-brief", "link"],
        "addresses": ["ip", "-brief", "address"],
        "routes": ["ip", "route", "show", "table", "all"],
        "tables": ["nft", "list", "ruleset"],
    }
    return {name: run(command).stdout for name, command in commands.items()}


def test_all_of_it_without_a_default_route_and_nothing_stays(
    make_podling: Callable[[], Podling], image_archives: dict[str, Path]
) -> None:
    podling = make_podling()

    def story() -> None:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        before = network()
        podling.up()
        for archive in image_archives.values():
            podling.command("images", "load", str(archive))
        service = podling.get("service", "kubernetes", "-n", "default")["spec"]["clusterIP"]
        printed = job(podling, "default", "asks", {"image": BUSYBOX, "command": ["sh", "-c", ASK]})
        assert f"Address: {service}\n" in printed
        assert printed.endswith("reached\n"), printed
        config = ("--kubeconfig", str(podling.instance.kubeconfig))
        version = run(["kubectl", *config, "--server", f"https://{service}", "version", "-o", "json"])
        assert json.loads(version.stdout)["serverVersion"]
        assert network()["tables"]
        podling.end()
        assert network() == before

    apart(story)
