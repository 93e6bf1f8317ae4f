"""What a health path answers: `ok`, or each of its checks in kube-apiserver's words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping


def named(exclude: Iterable[str]) -> Collection[str]:
    """The names in the values of `?exclude=`, each of which has one or several, separated by commas."""
    return dict.fromkeys(part for value in exclude for part in value.split(","))


def outcome(
    path: str, faults: Mapping[str, str], *, verbose: bool, excluded: Collection[str] = ()
) -> tuple[int, str]:
    """Status and body of `/path`. `faults` has what is wrong for each check, empty if nothing is. The reasons
    are not told, since everyone may ask."""
    lines, is_healthy = [], True
    for check, why in faults.items():
        if check in excluded:
            lines.append(f"[+]{check} excluded: ok")
        elif why:
            is_healthy = False
            lines.append(f"[-]{check} failed: reason withheld")
        else:
            lines.append(f"[+]{check} ok")
    if unknown := sorted(set(excluded) - faults.keys()):
        listed = ", ".join(f'"{check}"' for check in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {listed}")
    if is_healthy and not verbose:
        return 200, "ok"
    lines.append(f"{path} check {'passed' if is_healthy else 'failed'}\n")
    return 200 if is_healthy else 500, "\n".join(lines)
