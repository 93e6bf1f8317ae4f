#!/usr/bin/env bash
# Runs the README's two commands on a bare Debian made for it, and removes that Debian afterwards. What is committed
# is what runs; nothing this machine happens to have can help. Takes about a quarter of an hour and 4 GB of disk.
#
#   scripts/clean-room.sh [SUITE] [TRANSCRIPT]      SUITE: bookworm (the default), trixie
#
# The Debian is a debootstrap root with mount, process and host name spaces of its own; the network is this machine's,
# and so is how package indexes are reached (apt's and pip's configuration, certificates, proxies).
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
suite=${1:-bookworm}
transcript=${2:-}

[ "$(id -u)" -eq 0 ] || { echo "A Debian root needs root: run this with sudo." >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap" >&2; exit 1; }

root=$(mktemp -d /var/tmp/podling-clean-room.XXXXXX)
chmod 755 "$root"
# All mounts are in a namespace that ends with its processes, so there is nothing to unmount here.
trap 'rm -rf --one-file-system "$root"' EXIT

mirror=$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)
printf '==> making a bare Debian %s in %s\n' "$suite" "$root"
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
  { tail -n 20 "$root.log" >&2; exit 1; }
rm "$root.log"

cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
  [ ! -e "$file" ] || cp "$file" "$root$file"
done
# Not in the usual place: Debian's package of certificates, installed later, writes that anew.
certificates=/etc/certificates-of-the-machine.crt
cp /etc/ssl/certs/ca-certificates.crt "$root$certificates"
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

# bash becomes process 1 of the new Debian: when it ends, everything it left ends too. The new root is a mount and
# the old one is gone, as runc needs it.
cat >"$root.enter" <<'ENTER'
set -eu
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
cd "$1"
pivot_root . mnt
umount --lazy mnt
exec chroot . /bin/bash /root/inside
ENTER
trap 'rm -rf --one-file-system "$root" "$root.enter"' EXIT

kept=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}")
kept+=(PIP_CERT=$certificates)
while IFS= read -r -d '' variable; do
  case $variable in
    PIP_FIND_LINKS=* | PIP_CERT=*) ;;
    PIP_*=* | *_proxy=* | *_PROXY=*) kept+=("$variable") ;;
  esac
done < <(env -0)

env -i "${kept[@]}" unshare --mount --pid --uts --fork --kill-child bash "$root.enter" "$root"
[ -z "$transcript" ] || cp "$root/root/transcript" "$transcript"
