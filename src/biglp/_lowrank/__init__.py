"""Rows to low-rank features: each method in the file of its name."""

from __future__ import annotations
