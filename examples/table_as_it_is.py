"""
A table as it is
================

Customers with dates, categories of three to two thousand values, long tails, holes, IDs and a comment.
200 of them are known to have left or stayed. Nothing is prepared: the data frame goes in as it is, and
the report says what became of each column. The customers are made by
:download:`customers.py <../../examples/customers.py>`; save it beside this example to run it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from customers import make_customers
from sklearn.metrics import roc_auc_score

from biglp import LowRankLabelPropagation

ROWS, LABELS = 6_000, 200
warnings.simplefilter("ignore")
table, left = make_customers(ROWS)
known = np.random.default_rng(1).choice(ROWS, LABELS, replace=False)
y = np.full(ROWS, -1)
y[known] = left[known]
print(table.iloc[0])

# %%
# Fitted on all columns, and on fewer and fewer of them:

choices = {
    "everything, comments read": {"text": ["comment"]},
    "everything": {},
    "numbers only": {"columns": ["monthly_spend", "income", "tickets", "age"]},
    "age only": {"columns": ["age"]},
}
hidden = y == -1
scores = {}
for name, options in choices.items():
    model = LowRankLabelPropagation(**options).fit(table, y)
    scores[name] = 100 * roc_auc_score(left[hidden], model.label_distributions_[hidden, 1])
    if name == "everything":
        report = model.report_

figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
gains = [score - 50 for score in scores.values()]  # 50 is a coin's
bars = axes.barh(list(scores), gains, left=50, color="#1f77b4")
axes.bar_label(bars, [f"{score:.1f}" for score in scores.values()], padding=4)
axes.axvline(50, color="grey")
axes.set(xlim=(40, 100), xlabel="AUC on the customers whose label was hidden, % (50: a coin)")
axes.invert_yaxis()
axes.set_title(f"{LABELS} labels, {ROWS:,} customers", loc="left")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What was left out, and why:

for column, reason in report["left_out_columns"].items():
    print(f"{column:14} {reason}")
