"""The roles and bindings that every cluster has, as data."""
