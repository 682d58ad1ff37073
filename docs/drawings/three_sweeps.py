"""Rows in blocks, three sweeps over them, and the small matrices between."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch, Rectangle

BLUE, RED, GREY = "#1f77b4", "#d1495b", "#9fb3cf"


def blocks(axes: plt.Axes, x: float, colour: str) -> None:
    """A tall stack of row blocks."""
    for place in range(9):
        axes.add_patch(Rectangle((x, 0.4 * place), 0.9, 0.34, facecolor=colour, alpha=0.85))
    axes.text(x + 0.45, 3.75, "n rows", ha="center", fontsize=9)


def box(axes: plt.Axes, x: float, words: str, size: str) -> None:
    """What is left of a sweep."""
    shape = FancyBboxPatch(
        (x, 1.25), 1.5, 1.1, boxstyle="round,pad=0.06", facecolor="white", edgecolor=RED, lw=2
    )
    axes.add_patch(shape)
    axes.text(x + 0.75, 1.95, words, ha="center", va="center", fontsize=11)
    axes.text(x + 0.75, 1.5, size, ha="center", va="center", fontsize=9, color="#555555")


def arrow(axes: plt.Axes, start: float, stop: float) -> None:
    """From one step to the next."""
    axes.annotate("", (stop, 1.8), (start, 1.8), arrowprops={"arrowstyle": "-|>", "lw": 1.6})


figure, axes = plt.subplots(figsize=(10, 3.4))
steps = [(0, GREY, "1  degrees"), (3.4, GREY, "2  Gram"), (9.2, BLUE, "3  labels")]
for x, colour, title in steps:
    blocks(axes, x, colour)
    axes.text(x + 0.45, 4.25, title, ha="center", fontsize=12, weight="bold")
box(axes, 1.4, "Σ φ", "r numbers")
box(axes, 4.8, "H, B", "r × r, r × c")
box(axes, 7.1, "C", "r × c, every α")
for start, stop in [(0.95, 1.3), (3.0, 3.35), (4.35, 4.7), (6.4, 7.0), (8.7, 9.15)]:
    arrow(axes, start, stop)
axes.text(6.7, 0.75, "no rows here", ha="center", fontsize=9, color=RED)
axes.text(10.9, 1.8, "a label\nfor each row,\nwritten where\nit is made", va="center", fontsize=9)
axes.set(xlim=(-0.2, 12.4), ylim=(-0.1, 4.7))
axes.axis("off")
figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)
