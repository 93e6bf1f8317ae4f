"""The Kubernetes API: request, authentication, authorization, admission, registry, storage, answer."""
