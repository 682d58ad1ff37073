"""Tables as they are, on the command line."""

from __future__ import annotations

import numpy as np

from cli_tools import done
from made_tables import articles, some_labels


def test_text_on_the_command_line(here):
    frame, topic = articles()
    frame["label"] = some_labels(topic, 40)
    frame.to_csv("x.csv", index=False)
    shown = done("inspect", "x.csv", "--label-column", "label", "--text", "text").stdout
    assert "its words are counted" in shown
    fit = ("fit", "x.csv", "--label-column", "label", "--text", "text", "--columns", "text")
    done(*fit, "-o", "out")
    done("predict", "out/model.biglp", "x.csv", "-o", "new.npy")
    assert (np.load("new.npy").astype(int) == topic).mean() > 0.85
