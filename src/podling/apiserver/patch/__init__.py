"""The patch types of the API: pure functions from a JSON document and a patch to a new document."""
