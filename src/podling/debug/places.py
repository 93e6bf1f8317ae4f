"""What `podling cp` is told: where files are, which names an archive may have, and what runs in the pod."""

from __future__ import annotations

from typing import NamedTuple

from podling.debug.container import WishError, all_containers, status_of
from podling.model.types.pod import Pod

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
LOCAL = ("/", "./", "../", "~")

LOOK = r"""
set -u
root=$1 path=$2 at= links=0
command -v tar >/dev/null || exit 127
while [ -n "$path" ]; do
  part=${path%%/*}
  case $path in */*) path=${path#*/} ;; *) path= ;; esac
  case $part in
    "" | .) continue ;;
    ..) at=${at%/*}; continue ;;
  esac
  if [ -L "$root$at/$part" ]; then
    links=$((links + 1))
    [ $links -le 40 ] || { echo "too many symbolic links" >&2; exit 3; }
    link=$(readlink "$root$at/$part" && echo x) || exit 3
    link=${link%??}
    case $link in /*) at= ;; esac
    path=$link/$path
  else
    at=$at/$part
  fi
done
size=0
if [ -d "$root$at" ]; then kind=directory
elif [ -f "$root$at" ]; then
  kind=file
  size=$(stat -c %s "$root$at" 2>/dev/null || wc -c <"$root$at") || exit 3
elif [ -e "$root$at" ]; then kind=other
elif [ -d "$root${at%/*}/" ]; then kind=missing
else kind=nowhere
fi
printf '%s\n%s\n%s' $kind $size "$at"
"""
"""Finds PATH below ROOT as a process in there would: the links of its components are followed within."""
FIND_TARGET = r"""
for one in /proc/[0-9]*; do
  if grep -q "$1" $one/cgroup 2>/dev/null; then pid=${one#/proc/}; break; fi
done
pid=${pid:-1}
there=$(readlink /proc/$pid/ns/mnt) || { echo "its files may not be seen" >&2; exit 3; }
[ "$there" != "$(readlink /proc/self/ns/mnt)" ] || { echo "its processes are not shown here" >&2; exit 3; }
ls -d /proc/$pid/root/. >/dev/null || exit 3
printf %s /proc/$pid/root
"""
"""Finds the root of the container that is targeted: process 1, unless all the pod's processes are shown."""
PACK = 'cd "$1" && exec tar -cf - "$2"'
UNPACK = 'mkdir -p "$1" && cd "$1" && exec tar -xf -'
REST = 'exec tail -c "+$2" "$1"'
APPEND = 'cat >>"$1"; exit $?'
"""The shell stays: containerd ends a command's input when one of its outputs is closed."""
CHECK = 'command -v sha256sum >/dev/null || exit 127; cd "$1" && exec sha256sum -c -'


class Place(NamedTuple):
    """A path of this machine if `pod` is empty, else in a container of the pod."""

    path: str
    pod: str = ""
    namespace: str = ""


class Looked(NamedTuple):
    """What is at a path of a container. `kind` is directory, file, other, missing, or nowhere: where there is
    not even its directory. `path` has no links in it."""

    kind: str
    size: int
    path: str

    @property
    def directory(self) -> str:
        return self.path.rpartition("/")[0] or "/"

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def place(text: str) -> Place:
    """`PATH`, `POD:PATH` or `NAMESPACE/POD:PATH`. Raises WishError."""
    pod, colon, path = text.partition(":")
    if not colon or text.startswith(LOCAL):
        return Place(text)
    namespace, _, name = pod.rpartition("/")
    if not name or not path or "/" in namespace:
        raise WishError(f"{text}: give PATH, POD:PATH or NAMESPACE/POD:PATH")
    return Place(path, name, namespace)


def looked(said: bytes) -> Looked:
    """What LOOK has printed."""
    kind, size, path = said.decode(errors="surrogateescape").split("\n", 2)
    return Looked(kind, int(size), path or "/")


def container_of(pod: Pod, name: str) -> str:
    """The container that is meant: that of the name, the pod's default, or its first. Raises WishError."""
    names = [one.name for one in all_containers(pod)]
    first = pod.spec.containers[0].name
    wanted = name or pod.metadata.annotations.get(DEFAULT_CONTAINER, "") or first
    if wanted not in names:
        raise WishError(f"pod {pod.metadata.name} has no container {wanted}: there are {', '.join(names)}")
    return wanted


def user_of(pod: Pod, container: str) -> tuple[int, int]:
    """User and group as which the container runs, as far as the pod tells; else root."""
    status = status_of(pod, container)
    if status and status.user and status.user.linux:
        return status.user.linux.uid, status.user.linux.gid
    spec = pod.spec
    found = next(one for one in all_containers(pod) if one.name == container)
    of_pod, own = spec.security_context, found.security_context
    users = [one.run_as_user for one in (own, of_pod) if one and one.run_as_user is not None]
    groups = [one.run_as_group for one in (own, of_pod) if one and one.run_as_group is not None]
    return (users or [0])[0], (groups or [0])[0]


def parts_of(name: str) -> tuple[str, ...]:
    """The components of a name in an archive, below where it is unpacked. Raises ValueError for a name that
    leaves it."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise ValueError(f"{name!r} leaves the directory")
    return parts
