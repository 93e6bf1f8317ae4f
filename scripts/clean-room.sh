#!/usr/bin/env bash
# Runs the README's two commands on a bare Debian made for it, and removes that Debian afterwards. What is committed
# is what runs; nothing this machine happens to have can help. Takes about a quarter of an hour and 4 GB of disk.
#
#   scripts/clean-room.sh [SUITE] [TRANSCRIPT]      SUITE: bookworm (the default), trixie
#
# The Debian is a debootstrap root with mount, process and host name spaces of its own; see debian.sh.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
suite=${1:-bookworm}
transcript=${2:-}

root=$(mktemp -d /var/tmp/podling-clean-room.XXXXXX)
chmod 755 "$root"
# All mounts are in a namespace that ends with its processes, so there is nothing to unmount here.
trap 'rm -rf --one-file-system "$root"' EXIT

scripts/debian.sh make "$suite" "$root"
git clone --quiet . "$root/root/podling"

cat >"$root/root/inside" <<'INSIDE'
set -eu
hostname debian
cd /root/podling
# Bridge and cgroups are this machine's: they must not stay, however this ends.
trap '.venv/bin/podling down' EXIT
scripts/demo.sh --transcript /root/transcript || { tail -n 50 /var/lib/podling/*.log; exit 1; }
.venv/bin/podling status
.venv/bin/podling down
scripts/test.sh
INSIDE

scripts/debian.sh run "$root" /root/inside
[ -z "$transcript" ] || cp "$root/root/transcript" "$transcript"
