"""The API types, a file for each API group; core, which is large, by area."""
