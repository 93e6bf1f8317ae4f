"""The OpenAPI documents, v2 and v3, made from the types."""
