#!/usr/bin/env bash
# Sets this machine up, starts podling and shows it at work; podling stays running. `--help` lists the options.
set -euo pipefail
scripts=$(dirname "$(realpath "$0")")
"$scripts/setup.sh"
exec "$scripts/../.venv/bin/python" "$scripts/../examples/neato/demo.py" "$@"
