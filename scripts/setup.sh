#!/usr/bin/env bash
# Sets up a machine for podling, and says what it does: system packages, a virtual environment with podling in it, and
# kubectl when the machine has none. Safe to run again: what is there is left alone.
#
#   scripts/setup.sh          what running podling and its demo needs
#   scripts/setup.sh test     and what the tests and benchmarks need
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-run}
venv=.venv
stamp=$venv/.podling-$purpose

say() { printf '==> %s\n' "$*"; }

[ "$(id -u)" -eq 0 ] || { echo "Containers need root: run this with sudo." >&2; exit 1; }

# Program (or file) that must be there, and the Debian or Ubuntu package that has it.
needs=(
  "containerd containerd" "ctr containerd" "runc runc" "nft nftables" "iptables iptables" "ip iproute2"
  "catatonit catatonit" "busybox busybox-static" "docker-registry docker-registry"
  "gcc gcc" "/usr/include/stdio.h libc6-dev" "curl curl"
)
cni_plugins() { for d in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do [ -x "$d/ptp" ] && return; done; return 1; }
[ "$purpose" = test ] && needs+=("wrk wrk" "git git" "strace strace" "tcpdump tcpdump" "gdb gdb-minimal" \
  "mkfs.ext4 e2fsprogs" "mkfs.xfs xfsprogs" "sysctl procps")

missing=()
for need in "${needs[@]}"; do
  read -r program package <<<"$need"
  command -v "$program" >/dev/null 2>&1 || [ -e "$program" ] || missing+=("$package")
done
cni_plugins || missing+=(containernetworking-plugins)

python=
for candidate in python3 python3.13 python3.12 python3.11; do
  if "$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || missing+=(python3 python3-venv)
[ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)

if [ ${#missing[@]} -gt 0 ]; then
  say "installing system packages: $(printf '%s\n' "${missing[@]}" | sort -u | tr '\n' ' ')"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  # A package that starts its service on installation must not: podling runs its own containerd, the demo its own registry.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
    trap 'rm -f $policy' EXIT
  fi
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

python=${python:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "podling needs Python 3.11 or newer; this machine's $("$python" --version) is too old." >&2
  exit 1
}

if [ ! -x $venv/bin/python ]; then
  say "creating a virtual environment in $venv"
  "$python" -m venv $venv
fi

# The stamp is as new as what it was made from: nothing is asked of the package index when nothing has changed.
if [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ] || [ -n "$(find src -name '*.proto' -newer "$stamp")" ]; then
  say "installing podling into it"
  extras=$([ "$purpose" = test ] && echo '[test]' || true)
  $venv/bin/pip install --quiet --disable-pip-version-check --editable ".$extras"
  # pip compiles what it installs, but not an editable project; where Python may not write bytecode itself
  # (PYTHONDONTWRITEBYTECODE), each start would compile all of it again, which takes as long as the start.
  $venv/bin/python -m compileall -q src
  # What the tests need is more than what running needs.
  touch "$stamp" "$venv/.podling-run"
fi

if ! command -v kubectl >/dev/null 2>&1 && [ ! -x $venv/bin/kubectl ]; then
  say "installing kubectl into it"
  $venv/bin/python scripts/kubectl.py $venv/bin/kubectl
fi
