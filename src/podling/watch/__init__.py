"""The watch cache of a resource: encoded objects, the window of recent changes, and subscriptions."""
