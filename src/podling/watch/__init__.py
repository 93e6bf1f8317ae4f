"""The cache of a resource: encoded objects, the window of recent events, and their fan-out to watchers."""
