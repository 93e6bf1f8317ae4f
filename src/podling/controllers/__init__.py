"""The controllers, a file for each concern. A controller is a name, a queue and a `reconcile(key)`."""
