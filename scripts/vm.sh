#!/usr/bin/env bash
# Runs tests in a virtual machine that boots Debian's kernel and systemd: cgroup v2 and nothing else, and what comes
# with it. What is committed is what runs. Ends with the status of pytest, and leaves nothing behind.
#
#   scripts/vm.sh [SUITE] [PYTEST ARGUMENT ...]     SUITE: trixie (the default), bookworm, forky (containerd 2)
#
# Without arguments it runs the tests of what only cgroup v2 can show, or a kernel with project quotas. Debian and its packages are installed before
# the boot; the machine itself reaches nothing outside. Where the processor lends itself to it, KVM runs it, else
# qemu emulates one: everything takes about ten times as long. 4 GB of memory, two processors.
#
#   PODLING_VM_CACHE=DIR      keep the installed Debian there for the next run (2 GB a suite)
#   PODLING_VM_TIMEOUT=TIME   give up after so long (default 60m)
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
case ${1:-} in
  bookworm | trixie | forky) suite=$1; shift ;;
  *) suite=trixie ;;
esac
[ $# -gt 0 ] || set -- tests/e2e/test_cgroup2.py tests/e2e/test_resources.py tests/unit/kubelet/node/test_cgroups.py \
  tests/contract/size_limits tests/e2e/test_persistent_volumes.py
command -v qemu-system-x86_64 >/dev/null || { echo "qemu is missing: apt-get install qemu-system-x86" >&2; exit 1; }

work=$(mktemp -d /var/tmp/podling-vm.XXXXXX)
chmod 755 "$work"
machine=
trap '[ -z "$machine" ] || kill "$machine" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM
root=${PODLING_VM_CACHE:-$work}/$suite

if [ ! -e "$root" ]; then
  mkdir -p "$(dirname "$root")"
  rm -rf --one-file-system "$root.new"
  scripts/debian.sh make "$suite" "$root.new"
  git clone --quiet . "$root.new/root/podling"
  mkdir -p "$root.new/etc/initramfs-tools/conf.d"
  # The disk is all that the kernel cannot reach by itself.
  echo MODULES=list >"$root.new/etc/initramfs-tools/conf.d/podling"
  printf "%s\n" virtio_pci virtio_blk >"$root.new/etc/initramfs-tools/modules"
  cat >"$root.new/root/install" <<'INSTALL'
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends systemd-sysv initramfs-tools linux-image-cloud-amd64 >/dev/null
# Tests start their own.
systemctl --quiet mask containerd.service docker-registry.service
INSTALL
  scripts/debian.sh run "$root.new" /root/install
  mv "$root.new" "$root"
fi
git -C "$root/root/podling" fetch --quiet "$PWD" HEAD
git -C "$root/root/podling" reset --quiet --hard FETCH_HEAD

cat >"$root/root/prepare" <<'PREPARE'
set -eu
cd /root/podling
scripts/setup.sh test
apt-get clean
PREPARE
scripts/debian.sh run "$root" /root/prepare

{
  echo 'cd /root/podling'
  printf 'exec .venv/bin/pytest --color=no'
  printf ' %q' "$@"
} >"$root/root/tests"
cat >"$root/root/run" <<'RUN'
modprobe -a virtio_console virtio_net overlay br_netfilter
exec >/dev/hvc0 2>&1
# The only network there is leads nowhere, but a node has an address and a default route.
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
echo "==> Linux $(uname -r), $(containerd --version | cut -d' ' -f3), $(runc --version | head -n 1), cgroups:" \
  "$(cat /sys/fs/cgroup/cgroup.controllers)"
bash /root/tests
echo $? >/dev/hvc1
RUN
cat >"$root/etc/systemd/system/tests.service" <<'UNIT'
[Unit]
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate
[Service]
Type=oneshot
TimeoutStartSec=infinity
Environment=HOME=/root PATH=/root/podling/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/bin/bash /root/run
UNIT
ln -sf ../tests.service "$root/etc/systemd/system/multi-user.target.wants/"
echo podling-vm >"$root/etc/hostname"
printf '==> making its disk\n'
truncate --size 6G "$work/disk"
mke2fs -q -t ext4 -d "$root" "$work/disk"

if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
  processor=(-accel kvm -cpu host)
else
  # cmpxchg16b is what qemu 7.2 emulates wrongly: it loses the flags, and Linux its way.
  processor=(-accel "tcg,thread=multi,tb-size=1024" -cpu "max,-cx16")
fi
systemd='systemd.getty_auto=0 systemd.show_status=0'
printf '==> booting it (%s)\n' "${processor[1]%%,*}"
# Whoever must have the processor alone for a while says `stop` and `cont` to the monitor: time in the guest stops, too.
timeout "${PODLING_VM_TIMEOUT:-60m}" \
  qemu-system-x86_64 -M q35 "${processor[@]}" -smp 2 -m 4G -rtc clock=vm -display none -no-reboot \
  -monitor "unix:$work/monitor,server=on,wait=off" \
  -kernel "$root/vmlinuz" -initrd "$root/initrd.img" \
  -append "root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off net.ifnames=0 $systemd" \
  -drive "file=$work/disk,if=virtio,format=raw,cache=unsafe" \
  -nic user,restrict=on,model=virtio-net-pci -device virtio-serial -serial "file:$work/console" \
  -chardev stdio,id=output,signal=off -device virtconsole,chardev=output \
  -chardev "file,path=$work/status,id=status" -device virtconsole,chardev=status &
machine=$!
status=0
wait "$machine" || status=$?
machine=

if [ -s "$work/status" ]; then
  exit "$(tr -d '\r\n' <"$work/status")"
fi
printf 'The machine ended (%s) before its tests did. Its last words:\n' "$status" >&2
tail -n 40 "$work/console" >&2
exit 1
