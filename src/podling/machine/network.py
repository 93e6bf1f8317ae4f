"""The pods' network: its CNI configuration, the nftables rule by which pods reach beyond it, and the route to
the services' addresses.

The rule masquerades the whole subnet, in a table of this podling's own, of either family. The CNI plugin
could do it, but would add and remove iptables rules for every pod. Every pod has a link to the machine of its
own and no bridge, so that all packets are routed: on a bridge, the answer of a service's endpoint would go to
its client unseen, with the endpoint's address (docs/decisions/069).

The pods' subnets are one of IPv4 and perhaps one of IPv6, with a comma between them.
"""

from __future__ import annotations

import ipaddress
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from podling.process.programs import ended

NETWORK_NAME = "podling"
SERVICES_FILE, NODES_FILE, ADDRESSES_FILE = "services", "nodes", "own-addresses"
ROUTE_PROTOCOL = "112"
"""Of podling's routes, by which they are told from others."""

_TOLD = 0x40000
"""RTF_ADDRCONF."""
_EVERYWHERE = ("0.0.0.0/0", "::/0")
_AT_ONCE = (
    # `tuning` has to follow a plugin that made something.
    {"type": "loopback"},
    {"type": "tuning", "sysctl": {"net.ipv6.conf.default.accept_dad": "0"}},
)
"""An address of IPv6 that nobody else can have is used at once. The link would be asked for a second first
whether somebody has it, and `ptp` waits for that."""

NOWHERE = ("default", "nexthop", "unreachable", "blackhole", "prohibit")
"""How lines about routes begin that lead no address elsewhere."""

log = logging.getLogger(__name__)


def cni_configuration(subnets: str, address_dir: Path) -> str:
    """A CNI 1.0 list: a link for each pod with host-local addresses, kept under `address_dir`, host ports,
    and the bandwidth that annotations limit."""
    listed = subnets.split(",")
    plugins = [
        *(_AT_ONCE if len(listed) > 1 else ()),
        {
            "type": "ptp",
            "ipMasq": False,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": one}] for one in listed],
                "routes": [{"dst": _EVERYWHERE[":" in one]} for one in listed],
                "dataDir": str(address_dir),
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
        {"type": "bandwidth", "capabilities": {"bandwidth": True}},
    ]
    return json.dumps({"cniVersion": "1.0.0", "name": NETWORK_NAME, "plugins": plugins}, indent=2) + "\n"


def gateway(subnets: str) -> str:
    """The machine's address of IPv4 to the pods: the first host of the subnet."""
    return str(next(ipaddress.IPv4Network(subnets.partition(",")[0]).hosts()))


class NetworkError(Exception):
    """The network could not be set up; the message has the output of `nft` or `ip`."""


def ruleset(table: str, subnets: str, others: Sequence[str] = ()) -> str:
    """An nft script that replaces `table` of each family as a whole, so that running it twice leaves one
    rule. Pods of other nodes, whose subnets are `others`, see a pod's own address."""
    script = ""
    for subnet in subnets.split(","):
        ip = "ip6" if ":" in subnet else "ip"
        pods = ", ".join([subnet, *(one for one in others if (":" in one) == (":" in subnet))])
        script += (
            f"table {ip} {table} {{}}\n"
            f"delete table {ip} {table}\n"
            f"table {ip} {table} {{\n"
            "  chain postrouting {\n"
            "    type nat hook postrouting priority srcnat; policy accept;\n"
            f"    {ip} saddr {subnet} {ip} daddr != {{ {pods} }} masquerade\n"
            "  }\n"
            "}\n"
        )
    return script


async def set_up_masquerade(table: str, subnets: str, others: Sequence[str] = ()) -> None:
    await _run("nft", "-f", "-", script=ruleset(table, subnets, others))


async def change_routes(routes: Sequence[str], entries: Sequence[str] = ()) -> None:
    """`routes` are lines of `ip -batch`, `entries` of `bridge -batch`, which go first. What is to be deleted
    may be gone already. Raises NetworkError for all else."""
    for program, lines in (("bridge", entries), ("ip", routes)):
        gone = [line for line in lines if " delete " in line]
        if gone:
            with suppress(NetworkError):
                await _run(program, "-force", "-batch", "-", script="\n".join(gone) + "\n")
        if new := [line for line in lines if " delete " not in line]:
            await _run(program, "-batch", "-", script="\n".join(new) + "\n")


async def has_link(name: str) -> bool:
    with suppress(NetworkError):
        return bool(await _run("ip", "link", "show", name))
    return False


def has_ipv6(root: Path = Path("/")) -> bool:
    """Whether a link that is new would have addresses of IPv6."""
    setting = root / "proc/sys/net/ipv6/conf/default/disable_ipv6"
    return setting.exists() and setting.read_text().strip() == "0"


def heard_routers(route_table: str) -> set[str]:
    """The links with a route that a router has told of, by the text of /proc/net/ipv6_route."""
    routes = (line.split() for line in route_table.splitlines())
    return {link for *_, flags, link in routes if int(flags, 16) & _TOLD}


def lead_on(subnets: str, root: Path = Path("/")) -> None:
    """Have this machine lead on what others send through it to pods, as CNI plugins do once there is one."""
    settings = root / "proc/sys/net"
    if ":" in subnets:
        # A machine that leads on believes no router's word on its own routes, unless it is told to all the
        # same: on the links where it has heard one, and on no other, since a pod is no router.
        for link in heard_routers((root / "proc/net/ipv6_route").read_text()):
            _turn(settings / "ipv6/conf" / link / "accept_ra", "1", "2")
        _turn(settings / "ipv6/conf/all/forwarding", "0", "1")
    _turn(settings / "ipv4/ip_forward", "0", "1")


def _turn(setting: Path, before: str, after: str) -> None:
    if setting.read_text().strip() == before:
        setting.write_text(after)


def noted_nodes(run_dir: Path) -> list[str]:
    """The subnets of other nodes' pods that this podling has routed."""
    return _noted(run_dir / NODES_FILE)


def note_nodes(run_dir: Path, subnets: Sequence[str]) -> None:
    (run_dir / NODES_FILE).write_text(" ".join(subnets))


async def tear_down_nodes(tunnel: str, run_dir: Path) -> None:
    """Remove the tunnel and the routes to the pods of other nodes; any may be gone already."""
    lines = [f"route delete {subnet} proto {ROUTE_PROTOCOL}" for subnet in noted_nodes(run_dir)]
    await change_routes([*lines, *([f"link delete {tunnel}"] if await has_link(tunnel) else [])])


def reach_older_pods(bridge: str) -> None:
    """Pods of an older podling that still run are on a bridge, and ask there for the addresses of new ones:
    have the machine answer for them."""
    settings = Path("/proc/sys/net/ipv4")
    for file, value in (
        (settings / "conf" / bridge / "proxy_arp", "1"),
        (settings / "neigh" / bridge / "proxy_delay", "0"),
    ):
        if file.exists():
            file.write_text(value)


def unseen_pods(bridge: str, root: Path = Path("/")) -> str:
    """That pods of an older podling, which are on a bridge, reach one another without the machine's IP stack,
    and so without its rules; empty if there are none, or if it sees them all the same."""
    ports = root / "sys/class/net" / bridge / "brif"
    seen = root / "proc/sys/net/bridge/bridge-nf-call-iptables"
    if not ports.exists() or len(list(ports.iterdir())) < 2:
        return ""
    if seen.exists() and seen.read_text().strip() == "1":
        return ""
    return (
        f"pods of an older podling still run on the bridge {bridge}, and network policies do not hold "
        "between these: delete them, so that they are made anew, or load br_netfilter and set "
        "net.bridge.bridge-nf-call-iptables to 1"
    )


def clashing(services: str, routes: str) -> list[str]:
    """Those of the machine's routes, lines as `ip route` prints them, that lead some of the services'
    addresses elsewhere. Another podling's with the same addresses does not, nor does the default."""
    wanted, found = ipaddress.ip_network(services), dict[str, None]()
    for line in routes.splitlines():
        words = line.split()
        if not words or words[0] in NOWHERE or ROUTE_PROTOCOL in words:
            continue
        if wanted.overlaps(ipaddress.ip_network(words[0])):
            found[line.strip()] = None
    return [*found]


def links_and_routes(lines: str) -> tuple[list[str], str]:
    """What `ip -oneline` says of addresses, as `2: eth0 inet 192.0.2.2/24 …`, and of routes: the names of the
    links, and the lines about routes."""
    links, routes = [], []
    for line in lines.splitlines():
        number, _, rest = line.partition(": ")
        if number.isdigit():
            links.append(rest.split()[0])
        else:
            routes.append(line)
    return links, "\n".join(routes)


async def set_up_service_route(services: str, address: str) -> None:
    """Route the services' subnet to the link that has `address`, which processes of this machine show there,
    if it is of the same family. Nothing leaves by that link: nftables leads on, or refuses. Without a route,
    a machine that has no default route could not even send to a service."""
    version = ipaddress.ip_network(services).version
    ip = ("ip", f"-{version}")
    asked = [f"route show root {services}", f"route show match {services}"]
    own = f"address show to {address}"
    if of_version := ipaddress.ip_address(address).version == version:
        asked.append(own)
    links, theirs = links_and_routes(await _run(*ip, "-oneline", "-batch", "-", script="\n".join(asked)))
    for route in clashing(services, theirs):
        log.warning(
            "the addresses of services (%s) are also others', whom this machine reaches by: %s; "
            "choose another range with --service-cluster-ip-range",
            services,
            route,
        )
    if of_version:
        to = [services, "dev", links[0], "src", address]
    else:
        links, _ = links_and_routes(await _run("ip", "-oneline", *own.split()))
        # What pods send to a route over loopback, IPv6 drops before nftables could refuse it.
        to = ["local", services, "dev", "lo"] if links[0] == "lo" else [services, "dev", links[0]]
    if version == 6:
        # It takes a route beside one to another link, which an older podling may have left.
        await _run(*ip, "route", "flush", *_own_routes(services))
    try:
        await _run(*ip, "route", "add", *to, "proto", ROUTE_PROTOCOL)
    except NetworkError as error:
        if not await _run(*ip, "route", "show", *_own_routes(services)):
            log.warning("the addresses of services (%s) are not routed: %s", services, error)


def _own_routes(services: str) -> tuple[str, ...]:
    return "table", "all", "proto", ROUTE_PROTOCOL, "exact", services


async def have_own_address(address: str, run_dir: Path) -> None:
    """Have the machine answer to it, whether or not there is a pod, until `tear_down_services`."""
    (run_dir / ADDRESSES_FILE).write_text(address)
    await _run("ip", "address", "replace", f"{address}/32", "dev", "lo")


def note_services(run_dir: Path, ranges: Sequence[str]) -> None:
    """Note there which routes are to be removed by `tear_down_services`."""
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / SERVICES_FILE).write_text(" ".join(ranges))


def _noted(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text().split()
    return []


def _removals(tables: Sequence[str]) -> str:
    """An nft script, for tables of either family that may not be there."""
    return "".join(f"table {f} {t} {{}}\ndelete table {f} {t}\n" for t in tables for f in ("ip", "ip6"))


async def tear_down_services(tables: Sequence[str], run_dir: Path) -> None:
    """Remove these tables of either family, and what is noted in `run_dir`; any may be gone already."""
    await _run("nft", "-f", "-", script=_removals(tables))
    noted = _noted(run_dir / SERVICES_FILE)
    # An older podling has noted an address there, or `-` in its place.
    for services in (one for one in noted if "/" in one):
        version = ipaddress.ip_network(services).version
        with suppress(NetworkError):
            await _run("ip", f"-{version}", "route", "flush", *_own_routes(services))
    older = [one for one in noted if "/" not in one and one != "-"]
    for address in (*_noted(run_dir / ADDRESSES_FILE), *older):
        with suppress(NetworkError):
            await _run("ip", "address", "delete", f"{address}/32", "dev", "lo")


async def tear_down_masquerade(table: str, bridge: str) -> None:
    """Remove the table of either family and the bridge; any may be gone already."""
    await _run("nft", "-f", "-", script=_removals([table]))
    try:
        await _run("ip", "link", "delete", bridge)
    except NetworkError as error:
        if "Cannot find device" not in str(error):
            raise


async def _run(*command: str, script: str = "") -> str:
    """What the command prints. Raises NetworkError."""
    done = await ended(*command, script=script)
    if done.returncode != 0:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode()
