"""A `Kind` for each resource: its defaults, rules, columns and subresources."""
