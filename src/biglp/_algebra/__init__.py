"""Small algebra on r × r numbers: no rows, no engine, no file."""

from __future__ import annotations
