"""The published description of the API, made from the types and the kinds: OpenAPI v2 and v3."""
