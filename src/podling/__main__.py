"""`python -m podling`."""

from podling.cli.main import program

program("podling")
