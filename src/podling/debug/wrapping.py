"""What runs around the command of a debug container: the target's files as `/`, and an end to a session that
nobody uses.

Both need nothing of the cluster, and of the image a shell. `/proc/PID/root` of a process of the target leads
to its files with all volumes; `/proc/PID/root` of the shell around the command, seen from there, to the
tools. So nothing is mounted and nothing is written, and a target of FROM scratch will do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podling.debug.container import Wish, WishError, status_of

if TYPE_CHECKING:
    from podling.model.types.pod import Pod

SHELL = "sh"

_FIND_TARGET = """\
target=/proc/1
if [ -n "$id" ]; then
  target=
  for process in /proc/[0-9]*; do
    while read -r line; do
      case $line in *"$id"*) target=$process ;; esac
    done < "$process/cgroup"
    [ -z "$target" ] || break
  done 2> /dev/null
fi
"""
_AT_ROOT = """\
tools=/proc/$$/root IFS=:
for place in $PATH; do
  [ ! -x "$place/sh" ] || break
done
unset IFS
shell=$place/sh
if why=$(chroot "$root" "$tools$shell" -c : 2>&1); then
  for part in bin sbin usr/bin usr/sbin usr/local/bin usr/local/sbin; do
    PATH=$PATH:$tools/$part
  done
  export PATH
  [ $# -gt 0 ] || set -- "$tools$shell"
  set -- chroot "$root" "$@"
elif cd "$root/" 2> /dev/null && ls > /dev/null 2>&1; then
  echo "podling: the files of the target are here, in $root, and / is the image's: $why" >&2
else
  echo "podling: user $(id -u) may not look at the files of the target, in $root: $why" >&2
  exit 126
fi
"""
"""Where a chroot is not allowed, or the tools need libraries that lie beside them, the directory is there."""
_WHEN_IDLE = """\
for program in stat sleep date readlink; do
  command -v "$program" > /dev/null || {
    echo "podling: --idle-timeout needs $program, which the image does not have" >&2
    exit 126
  }
done
exec 3<&0
(
  trap '' HUP
  me=$(exec sh -c 'echo $PPID') own=$(readlink /proc/self/ns/mnt) left=$limit
  while [ "$left" -gt 0 ]; do
    sleep "$left"
    set -- $(stat -L -c '%X %Y' /proc/self/fd/3)
    used=$1
    [ "$2" -le "$used" ] || used=$2
    left=$((used + 8 + limit - $(date +%s)))
  done
  printf '\\r\\npodling: nothing was typed or printed for %s seconds: the session ends.\\r\\n' "$limit" >&3
  found=
  for process in /proc/[0-9]*; do
    number=${process#/proc/}
    [ "$number" = "$$" ] || [ "$number" = "$me" ] || [ "$(readlink "$process/ns/mnt")" != "$own" ] ||
      found="$found $number"
  done
  kill -HUP $found
  sleep 1
  kill -KILL $found
) 2> /dev/null &
watcher=$!
"$@" 3<&-
code=$?
kill "$watcher" 2> /dev/null
exit "$code"
"""
"""A terminal knows when something was last read from it and written to it, to eight seconds. Whoever hears no
hang-up is killed; the shell around the command then ends by itself."""
ENDS_ALL = """\
own=$(readlink /proc/self/ns/mnt) found=
for process in /proc/[0-9]*; do
  number=${process#/proc/}
  [ "$number" = "$$" ] || [ "$(readlink "$process/ns/mnt")" != "$own" ] || found="$found $number"
done 2> /dev/null
kill -HUP $found
sleep 1
kill -KILL $found
"""
"""For an exec: ends the processes of its container, which are those in its mount namespace."""


def wrapped(wish: Wish, target_id: str, files: str = "") -> Wish:
    """With the command in what the wish needs around it. `target_id` is the ID of the target's container
    where process 1 is not its first; `files` is where the target's are, if they are mounted. Raises
    WishError."""
    if not wish.root and not wish.idle:
        return wish
    if wish.are_arguments:
        raise WishError("--root and --idle-timeout run a command of their own: leave --arguments-only away")
    if wish.idle and not wish.tty:
        raise WishError("--idle-timeout is about a terminal: give -it, too")
    lines = [f"id={target_id} limit={wish.idle}\n"]
    if wish.root:
        lines += [f"root={files}\n" if files else f"{_FIND_TARGET}root=$target/root\n", _AT_ROOT]
    lines += [f"[ $# -gt 0 ] || set -- {SHELL}\n", _WHEN_IDLE if wish.idle else '"$@"\n']
    # The kubelet takes $$ for $ before a shell sees it.
    script = "".join(lines).replace("$", "$$")
    return wish._replace(command=(SHELL, "-c", script, "podling", *wish.command))


def target_id(pod: Pod, target: str) -> str:
    """For `wrapped`. Raises WishError for a target that does not run."""
    status = status_of(pod, target)
    if status is None or status.state.running is None:
        raise WishError(f"--root: container {target} of pod {pod.metadata.name} does not run")
    is_shared = pod.spec.share_process_namespace or pod.spec.host_pid
    return status.container_id.rpartition("/")[2] if is_shared else ""


def may_look(target: dict[str, Any], of_pod: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    """The container with the target's user, unless it may look at any process: else only its own user
    may. The arguments are containers and a pod's security context as the API has them."""
    rights = container.get("securityContext", {})
    if rights.get("privileged") or "SYS_PTRACE" in rights.get("capabilities", {}).get("add", ()):
        return container
    own = {**of_pod, **target.get("securityContext", {})}
    user = {key: own[key] for key in ("runAsUser", "runAsGroup") if key in own}
    return container | {"securityContext": {**rights, **user}} if user else container
