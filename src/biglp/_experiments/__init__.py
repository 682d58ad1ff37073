"""The paper's experiments and the comparison with peers: ``biglp reproduce``, ``biglp bench``."""
