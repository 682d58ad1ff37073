"""Several methods on each row, weighted by how well they predict labels they have not seen.

Where rows form clusters the graph is far ahead with a handful of labels; where they do not, a plain
supervised model is. Nobody knows beforehand, so both are asked: label spreading at several α, and
logistic regression, class means, trees and neighbours, which know the labelled rows only. Their
logits are added with weights that minimise the log-loss on labelled rows whose own label was held
out, pulled towards weights that are good on average when labels are few.

- one file for each member, registered below;
- :mod:`.member`: what a member is, and what it learns from;
- :mod:`.starting_weights`: how much each counts before any label is held out;
- :mod:`.find_weights`: how much each counts then;
- :mod:`.answer`: the weighted answer, ready for any block of rows;
- :mod:`.method`: all of it together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biglp._core import Registry

if TYPE_CHECKING:
    from biglp._learn.committee.member import Member

MEMBERS: Registry[type[Member]] = Registry(
    {
        "spread": "biglp._learn.committee.answer:SpreadMember",
        "logistic": "biglp._learn.committee.logistic:LogisticMember",
        "seeded k-means": "biglp._learn.committee.means:SeededMember",
        "class means": "biglp._learn.committee.means:MeansMember",
        "forest": "biglp._learn.committee.forest:ForestMember",
        "nearest labels": "biglp._learn.committee.nearest:NearestMember",
    }
)
"""Every member by its name, in the order in which they are added: one line each."""
