"""The store every kind shares, and one file a kind: defaults, validation, columns, what may change."""
