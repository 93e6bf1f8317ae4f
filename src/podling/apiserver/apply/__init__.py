"""Server-side apply, and the managers of fields that every write records (`metadata.managedFields`)."""
