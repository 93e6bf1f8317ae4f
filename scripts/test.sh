#!/usr/bin/env bash
# Sets this machine up and runs every check and every test; ends with status 0 only when all of them pass.
# Arguments go to pytest in place of the whole suite: scripts/test.sh tests/unit
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
scripts/setup.sh test
export PATH=$PWD/.venv/bin:$PATH

failed=()
check() {
  local began=$SECONDS
  printf '\n==> %s\n' "$*"
  "$@" || failed+=("$*")
  printf '    (%d s)\n' $((SECONDS - began))
}
check ruff check
check ruff format --check
check mypy
check lint-imports

if [ ${#failed[@]} -gt 0 ]; then
  printf '\nfailed: %s\n' "${failed[@]}" >&2
  exit 1
fi

[ $# -gt 0 ] || set -- tests/unit tests/contract tests/e2e
printf '\n==> pytest %s\n' "$*"
exec pytest --durations=15 "$@"
