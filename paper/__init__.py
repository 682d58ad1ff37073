"""The paper's experiments, its data sets and the comparison with peers, run from a clone.

``python -m paper reproduce``, ``python -m paper datasets`` and ``python -m paper peers``.
"""
