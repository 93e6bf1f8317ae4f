"""The watch cache of a resource: encoded objects, the window of recent events, and the watchers'
subscriptions.
"""
