"""`python -m podling`."""

from podling.cli.main import main

main(prog_name="podling")
