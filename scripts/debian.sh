#!/usr/bin/env bash
# Bare Debians, for those scripts beside this one that prove what podling does on a machine that is not this one. The
# network is this machine's, and so is how package indexes are reached (apt's and pip's configuration, certificates,
# proxies).
#
#   scripts/debian.sh make SUITE ROOT    makes one in the directory ROOT
#   scripts/debian.sh run ROOT SCRIPT    runs a bash script that is in it, as its first process
set -euo pipefail

[ "$(id -u)" -eq 0 ] || { echo "A Debian root needs root: run this with sudo." >&2; exit 1; }

# Not in the usual place: Debian's package of certificates, installed later, writes that anew.
CERTIFICATES=/etc/certificates-of-the-machine.crt

make() { # what debootstrap makes, and how to reach package indexes
  local suite=$1 root=$2 mirror script=/usr/share/debootstrap/scripts
  command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap" >&2; exit 1; }
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)
  # Suites that are younger than this debootstrap are made as the newest is.
  [ -e "$script/$suite" ] && script+=/$suite || script+=/sid
  printf '==> making a bare Debian %s in %s\n' "$suite" "$root"
  debootstrap --variant=minbase "$suite" "$root" "$mirror" "$script" >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2; rm "$root.log"; exit 1; }
  rm "$root.log"

  cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
  echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
    [ ! -e "$file" ] || cp "$file" "$root$file"
  done
  cp /etc/ssl/certs/ca-certificates.crt "$root$CERTIFICATES"
}

run() { # with mount, process and host name spaces of its own
  local kept=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}")
  kept+=(PIP_CERT=$CERTIFICATES)
  while IFS= read -r -d '' variable; do
    case $variable in
      PIP_FIND_LINKS=* | PIP_CERT=*) ;;
      PIP_*=* | *_proxy=* | *_PROXY=*) kept+=("$variable") ;;
    esac
  done < <(env -0)
  # bash becomes process 1 of the Debian: when it ends, everything it left ends too. The new root is a mount and
  # the old one is gone, as runc needs it.
  env -i "${kept[@]}" unshare --mount --pid --uts --fork --kill-child bash -c '
    set -eu
    mount --bind "$1" "$1"
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs -o mode=755 tmpfs "$1/run"
    cd "$1"
    pivot_root . mnt
    umount --lazy mnt
    exec chroot . /bin/bash "$2"
  ' enter "$1" "$2"
}

case ${1:-}:$# in
  make:3) make "$2" "$3" ;;
  run:3) run "$2" "$3" ;;
  *) sed -n '/^#   /s/^# *//p' "$0" >&2; exit 2 ;;
esac
