"""The API types as structs, and pure rules about them: quantities, selectors, resources, errors. No I/O."""
