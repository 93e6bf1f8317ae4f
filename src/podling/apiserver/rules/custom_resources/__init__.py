"""Rules of CustomResourceDefinitions, and of the schemas in them."""
