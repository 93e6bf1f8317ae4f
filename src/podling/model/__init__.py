"""The API types as structs, and pure rules about them: quantities, selectors, effective resources, Status errors.

No I/O.
"""
