"""Several opinions on each row, weighed by how well they foretell labels they have not seen.

Where rows form clusters the graph is far ahead with a handful of labels; where they do not, a plain
supervised model is. Nobody knows beforehand, so both are asked: label spreading at several α, and
logistic regression, class means, trees and neighbours, which know the labelled rows only. Their
logits are added with weights that minimise the log-loss on labelled rows whose own label was held
out, pulled towards weights that are good on average when labels are few.

- :mod:`.members`: the opinions, and what they say of held-out labels (:mod:`.means`,
  :mod:`.forest` and :mod:`.nearest` have files of their own);
- :mod:`.weights`: how much each counts;
- :mod:`.decision`: the weighed answer, ready for any block of rows.
"""

from __future__ import annotations
