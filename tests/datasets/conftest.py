"""A server in the publishers' place, for all tests of this folder."""

from published import digits, site

__all__ = ["digits", "site"]
