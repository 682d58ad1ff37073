"""What a report says in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from biglp._fit.report import HELPED

GRAPHS = {
    "anchors": "{landmarks:,} landmarks stand for the rows; each row is tied to its nearest "
    "{nearest}, and labels spread over these ties",
    "nystrom": "{landmarks:,} landmarks stand for the rows; how similar two rows are is told by "
    "how similar each is to the landmarks (Nyström), and labels spread over that",
    "linear": "rows are tied by their inner products, and labels spread over these ties",
    "precomputed": "labels spread over the graph that was given, of {ties:,} ties",
}
LEARNT_GRAPH = (
    "the ties between rows were learnt from the data ({factor}, rank {rank:,}), and labels spread "
    "over them"
)
SCALINGS = {
    "none": "Features were taken as they are",
    "standard": "Features were given mean 0 and spread 1",
    "minmax": "Features were brought to the range from 0 to 1",
    "log": "Features were put on a logarithmic scale",
    "unit": "Rows were given length 1",
    "text": "Words were weighed by how rare they are",
    "table": "Each column was scaled by its kind",
}
USUAL_ERRORS = 2.0
"""Standard errors within which a difference may be chance."""


def story(settings: Mapping[str, Any]) -> list[str]:
    """Say what was done and chosen."""
    sentences = []
    if "scaling" in settings:
        scaled = SCALINGS.get(settings["scaling"], f"Features were scaled ({settings['scaling']})")
        if "directions" in settings:
            scaled += f", and rows projected on {settings['directions']:,} leading directions"
        sentences.append(f"{scaled}.")
    if "factor" in settings:
        words = GRAPHS.get(settings["factor"], LEARNT_GRAPH).format(**settings)
        sentences.append(f"{words[0].upper()}{words[1:]}.")
    committee, measured = "members" in settings, "held_out_error" in settings
    if committee:
        words = "Several methods answered together, weighted by how well they find labels held out"
        if settings.get("graph_share") is not None:
            words += f"; the graph carries {settings['graph_share']:.0%} of the weight"
        sentences.append(f"{words}.")
    if committee and not measured:
        share, alone = settings.get("held_out_accuracy"), settings.get("supervised_accuracy")
        if share is None:
            words = "There are too few labels to hold some out, so that weights are the usual ones"
        else:
            words = f"{share:.0%} of {settings['held_out_labels']:,} held-out labels were found"
            if alone is not None:
                helped = HELPED[settings.get("unlabelled_rows_helped")]
                words += f", {alone:.0%} without the graph: {helped}"
        sentences.append(f"{words}.")
    if settings.get("alpha") is not None and not committee:
        sentences.append(
            f"A row takes {settings['alpha']:.0%} of its score from its neighbours (alpha "
            f"{settings['alpha']:g})."
        )
    if settings.get("leave_one_out_accuracy") is not None:
        sentences.append(
            f"{settings['leave_one_out_accuracy']:.0%} of the labels were found when each was "
            "left out."
        )
    if named := settings.get("rows_labelled_by_names"):
        sentences.append(
            f"The names of the classes gave {named:,} rows their first labels, which count less "
            "the more labels there are."
        )
    if measured:
        errors = ", ".join(f"{error:.3g}" for error in settings["held_out_error"])
        sentences.append(
            f"The error on {settings['held_out_labels']:,} labels that were held out is {errors}."
        )
    return sentences


def about_estimate(settings: Mapping[str, Any]) -> list[str]:
    """Say how many rows are right, and how far that can be trusted."""
    estimate = settings.get("estimated_accuracy")
    if estimate is None and settings.get("labelled_rows") == 0:
        return [
            "How many rows are right cannot be told from names alone: label some twenty rows that "
            "biglp suggest names, and the next fit says it."
        ]
    if estimate is None:
        return []
    following = estimate["next_labels"]
    least, likely, most = (
        f"{round(100 * share, 1):g}"
        for share in (following["range"][0], following["gain"], following["range"][1])
    )
    sentences = [
        f"Always saying {estimate['largest_class']} would be right for "
        f"{estimate['base_rate']:.0%} of the rows. {following['labels']} more labels would add "
        f"about {likely} {'point' if likely == '1' else 'points'} ({least} to {most})."
    ]
    if settings.get("labels_cover_rows") is False:
        sentences.append(
            "The labels come from one region of the rows: nothing is known about the others, and "
            "the estimate is not to be trusted."
        )
    elif settings.get("trustworthy") is False:
        sentences.append(
            "The interval is wide: labels are too few to know the accuracy to about ten points."
        )
    return sentences


def about_confidence(confidence: np.ndarray) -> str:
    """Say how sure the model is of a sample of unlabelled rows."""
    sure, unsure = (confidence >= 0.9).mean(), (confidence < 0.5).mean()
    return (
        f"Of {len(confidence):,} unlabelled rows drawn at random {sure:.0%} have a class that is "
        f"at least 90% likely, and {unsure:.0%} one that is less than 50% likely; the mean is "
        f"{confidence.mean():.0%}."
    )


def about_reliability(groups: list[dict[str, Any]]) -> str:
    """Say whether confidence is what it says."""
    counts = np.array([group["labels"] for group in groups])
    total = int(counts.sum())
    sure = float(counts @ [group["confidence"] for group in groups]) / total
    right = float(counts @ [group["right"] for group in groups]) / total
    spread = np.sqrt(max(sure * (1.0 - sure), 0.25 / total) / total)
    if abs(right - sure) <= USUAL_ERRORS * spread:
        verdict = "as sure as it should be, as far as so many labels tell"
    else:
        verdict = "less sure than it could be" if right > sure else "surer than it should be"
    return (
        f"On {total:,} labels that were held out the model was {sure:.0%} sure on average, and "
        f"{right:.0%} were right: it is {verdict}."
    )
