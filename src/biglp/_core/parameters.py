"""Every parameter by name: its default, how a value is checked, and its option.

Estimators, jobs and command line have them from here. ``biglp --help`` is written from this table,
so that nothing heavy is loaded; registries of the rooms above are asked when one of their names is.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

from biglp._core.effort import DEFAULT_EFFORT, EFFORTS
from biglp._core.errors import ParameterError

# Checks: each takes the name of a parameter and the value that was found, returns the value as the
# work needs it, and says in its error what was found and what is allowed.

Check = Callable[[str, Any], Any]
NEAREST_TO_ONE = 1e-10
"""The algebra loses as many digits as 1 − α has zeros, of about 16."""


def anything(name: str, value: Any) -> Any:
    """Take a value as it is; whoever uses it checks it."""
    return value


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Check a name."""
    allowed = tuple(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(f"{name}={value!r} is not known; use one of {', '.join(allowed)}.")
    return value


def positive_integer(name: str, value: Any, least: int = 1) -> int:
    """Check an integer of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise ParameterError(
            f"{name}={value!r} cannot be used; give an integer of {least} or more."
        )
    return int(value)


def not_negative_integer(name: str, value: Any) -> int:
    """Check an integer of 0 or more."""
    return positive_integer(name, value, least=0)


def positive(name: str, value: Any) -> float:
    """Check a finite number above 0."""
    if not isinstance(value, numbers.Real) or not 0 < float(value) < math.inf:
        raise ParameterError(f"{name}={value!r} cannot be used; give a finite number above 0.")
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """Check a finite number of 0 or more."""
    if not isinstance(value, numbers.Real) or not 0 <= float(value) < math.inf:
        raise ParameterError(f"{name}={value!r} cannot be used; give a finite number of 0 or more.")
    return float(value)


def probability(name: str, value: Any) -> float:
    """Check a number from 0 to 1."""
    if not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
        raise ParameterError(f"{name}={value!r} cannot be used; give a number from 0 to 1.")
    return float(value)


def fraction(name: str, value: Any, also: str = "") -> float:
    """Check a number between 0 and 1, both excluded, from which 1 can be told."""
    if not isinstance(value, numbers.Real) or not 0 < float(value) < 1:
        raise ParameterError(
            f"{name}={value!r} is outside (0, 1); use {also}a number between 0 and 1, "
            "both excluded (0.99 spreads far, 0.01 hardly at all)."
        )
    if 1.0 - float(value) < NEAREST_TO_ONE:
        raise ParameterError(
            f"{name}={value!r} is 1 but for rounding, and nothing could be solved; use {also}a "
            "number up to 0.999999999 (0.99 spreads far)."
        )
    return float(value)


def true_or_false(name: str, value: Any) -> bool:
    """Check a switch."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name}={value!r} cannot be used; give True or False.")
    return value


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to biglp."""
    return isinstance(value, str) and value == "auto"


def unless_auto(check: Check) -> Check:
    """Check a value that may be left to biglp, which is None from there on."""
    return lambda name, value: None if is_auto(value) else check(name, value)


def seed_from(name: str, value: Any) -> int:
    """Turn None, an integer or a RandomState/Generator into one seed."""
    import numpy as np

    if value is None:
        return 0  # the same answer every time, unless another seed is asked for
    if isinstance(value, numbers.Integral) and int(value) >= 0:
        return int(value)
    if isinstance(value, np.random.RandomState):
        return int(value.randint(2**31 - 1))
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**31 - 1))
    raise ParameterError(
        f"{name}={value!r} cannot be used; give None, an integer of 0 or more, "
        "a RandomState or a Generator."
    )


def _alpha(name: str, value: Any) -> float | None:
    return None if is_auto(value) else fraction(name, value, "'auto' or ")


def _directions(name: str, value: Any) -> int | None:
    """Number of directions: None is "auto", 0 is "none"."""
    if is_auto(value):
        return None
    if isinstance(value, str) and value == "none":
        return 0
    try:
        return positive_integer(name, value)
    except ParameterError:
        raise ParameterError(
            f"{name}={value!r} cannot be used; give 'auto', 'none' or a number of "
            "directions, an integer of 1 or more."
        ) from None


def _dict(name: str, value: Any) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise ParameterError(f"{name}={value!r} cannot be used; give a dict or None.")
    return dict(value or {})


def _memory(name: str, value: Any) -> int:
    from biglp._core.memory import parse_memory

    return parse_memory(value, name)


def _device(name: str, value: Any) -> str:
    from biglp._core.arrays import require_device

    return require_device(value)


# Values of options, from text. A ValueError says what is wrong with it.


def auto_or(kind: type) -> Callable[[str], Any]:
    """Return a reader of numbers that also takes "auto"."""
    what = "a whole number" if kind is int else "a number"

    def read(text: str) -> Any:
        try:
            return text if text == "auto" else kind(text)
        except ValueError:
            raise ValueError(f"{text!r} is neither 'auto' nor {what}.") from None

    return read


def balance(text: str) -> Any:
    """Read a class balance: a word, or the classes' shares."""
    if "," not in text:
        return text
    try:
        return [float(share) for share in text.split(",")]
    except ValueError:
        raise ValueError(
            f"{text!r} is not auto, mass, share, centre or none, and not shares such as 0.9,0.1."
        ) from None


def column_names(text: str) -> tuple[str, ...]:
    """Split a list of column names; a name with a comma may stand in quotes."""
    import csv

    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True)))


def named_values(text: str) -> dict[str, Any]:
    """Read ``name=value,name=value``, where values may be numbers, true or false, or words."""
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not (name and equals and value):
            raise ValueError(f"{part!r} is not NAME=VALUE, such as max_iter=2000.")
        switch = {"true": True, "false": False}.get(value.lower())
        values[name] = number_or_text(value) if switch is None else switch
    return values


def number_or_text(text: str, kinds: tuple[type, ...] = (int, float)) -> Any:
    """Read a number where the text is one."""
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def whole_or_text(text: str) -> int | str:
    """Read a whole number where the text is one."""
    value: int | str = number_or_text(text, (int,))
    return value


def tab_or_text(text: str) -> str:
    """Read a delimiter; a tab may be written as a word or as in Python."""
    return "\t" if text in ("tab", "\\t") else text


# The table.

REQUIRED: Final = object()
"""The default of an option that must be given."""


def looked_up(place: str) -> Any:
    """What ``"module:NAME"`` stands for: rooms above this one are known by name only."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class Parameter:
    """What is known of a parameter.

    Attributes
    ----------
    default : object
    check : callable, optional
        ``check(name, value)`` returns the value as the work needs it, or refuses it.
    choices : tuple of str
        Words that it may be where it is text, or at all where there is no ``check``;
        ``"module:NAME"`` stands for the names of a registry.
    flag : str
        Names of its option, where it is not called after the parameter: ``"--number -n"``.
    metavar : str
        What stands for the value in ``--help``; by default the choices, but a registry that takes a
        while to load is not asked for a help text. A shell completes words between bars.
    help : str
        Its line in ``--help``; a parameter without one is no option.
    read : callable, optional
        How text becomes a value; by default after the type of the default. It raises ValueError.
    many : bool
        Whether the option may be given several times.
    least, most : float, optional
        Limits of a number that ``--help`` names.
    panel : str, optional
        Heading in ``--help``.
    """

    default: Any = None
    check: Check | None = None
    choices: tuple[str, ...] = ()
    flag: str = ""
    metavar: str = ""
    help: str = ""
    read: Callable[[str], Any] | None = None
    many: bool = False
    least: float | None = None
    most: float | None = None
    panel: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The choices, with the names of registries."""
        words: list[str] = []
        for choice in self.choices:
            words += looked_up(choice) if ":" in choice else (choice,)
        return tuple(words)

    def checked(self, name: str, value: Any) -> Any:
        """A value as the work needs it."""
        if self.choices and (self.check is None or isinstance(value, str)):
            return one_of(name, value, self.words)
        return value if self.check is None else self.check(name, value)


def _panel(panel: str, **parameters: Parameter) -> dict[str, Parameter]:
    return {name: replace(parameter, panel=panel) for name, parameter in parameters.items()}


ROWS, METHOD_PANEL, OUTPUT = "Reading the rows", "Method", "Output"

LABELS = _panel(
    ROWS,
    labels=Parameter(
        metavar="FILE",
        help="Labels: one a row (-1 or empty where there is none), 'row,label', 'id,label', each "
        "with a weight or without, or an export of Label Studio or Argilla. May be given several "
        "times, and beside --label-column: the last label of a row counts.",
        many=True,
    ),
    label_column=Parameter(metavar="NAME", help="Column that holds labels."),
    id_column=Parameter(
        metavar="NAME",
        help="Column that holds the rows' IDs: labels are joined by it, results carry it.",
    ),
    weight_column=Parameter(metavar="NAME", help="Column that holds the weights of the labels."),
    unlabelled=Parameter(
        metavar="VALUE",
        help="What marks a row without a label, beside empty: by default -1 and what programs "
        "write for a missing value (NA, null, ?, …). May be given several times.",
        read=whole_or_text,
        many=True,
    ),
)
"""Where the labels are."""

READING = _panel(
    ROWS,
    columns=Parameter(
        metavar="A,B,...", help="Feature columns; all by default.", read=column_names
    ),
    drop=Parameter(metavar="A,B,...", help="Columns that are no features.", read=column_names),
    categorical=Parameter(
        "auto",
        choices=("auto", "onehot", "error"),
        help="Text columns: auto takes each for what it is (few or many categories, dates, names "
        "of the rows), onehot makes a feature of each category, error refuses text.",
    ),
    text=Parameter(
        metavar="A,B,...",
        help="Columns of sentences, whose words are counted; left out without this.",
        read=column_names,
    ),
    missing=Parameter(
        "auto",
        choices=("auto", "mean", "error"),
        help="Missing values: auto fills in the median and marks them, mean fills in the mean, "
        "error refuses them.",
    ),
    delimiter=Parameter(
        metavar="CHAR",
        help="Delimiter of a text table; found by looking by default.",
        read=tab_or_text,
    ),
    decimal=Parameter(
        choices=(".", ","),
        help="Decimal mark of a text table; found by looking by default.",
    ),
    text_encoding=Parameter(
        flag="--encoding",
        metavar="NAME",
        help="Encoding of a text table, such as cp1252; found by looking by default.",
    ),
    dtype=Parameter(
        choices=("float32", "float64"),
        help="Precision of a table's rows; float64 for text.",
    ),
    metadata=Parameter(metavar="FILE", help="Table beside the rows that has their labels."),
    cache=Parameter(
        metavar="FOLDER|never",
        help="Where tables are converted and files of stores copied; by the output by default.",
    ),
)
"""How the rows are read."""

METHOD = _panel(
    METHOD_PANEL,
    factor=Parameter(
        "auto",
        choices=("auto", "biglp._lowrank:FACTORS"),
        help="Low-rank graph; auto is anchors.",
    ),
    n_landmarks=Parameter(
        "auto",
        check=unless_auto(positive_integer),
        flag="--n-landmarks -k",
        metavar="K",
        help="Number of landmarks.",
        read=auto_or(int),
    ),
    landmarks=Parameter(
        "kmeans",
        check=anything,
        metavar="kmeans|kmeans-full|random",
        help="How landmarks are chosen: k-means on a sample or on all rows, or random rows.",
    ),
    bandwidth=Parameter(
        "auto",
        check=unless_auto(positive),
        metavar="SIGMA",
        help="Width of the Gaussian kernel.",
        read=auto_or(float),
    ),
    alpha=Parameter(
        "auto",
        check=_alpha,
        metavar="ALPHA",
        help="How far labels spread, between 0 and 1.",
        read=auto_or(float),
    ),
    class_balance=Parameter(  # priors are checked once the number of classes is known
        "auto",
        check=anything,
        choices=("auto", "mass", "share", "centre", "none"),
        metavar="auto|mass|share|centre|none|P,Q,...",
        help="Weight of the classes: equal (mass), answers as frequent as labels (share), labels "
        "less their mean (centre), as it comes (none), or their shares.",
        read=balance,
    ),
    filter=Parameter(
        "auto",
        choices=("auto", "biglp._answers:FILTERS"),
        help="How labels spread; auto is the committee, or spreading with a factor.",
    ),
    clamp=Parameter(
        "soft",
        choices=("soft", "hard"),
        help="Whether labelled rows keep their labels (hard), or can be overruled (soft).",
    ),
    scaling=Parameter(
        "auto",
        choices=("biglp._sources.scaling:SCALINGS",),
        metavar="auto|none|standard|minmax|log|unit|text|table",
        help="Scaling of the features; auto looks at what they are.",
    ),
    projection=Parameter(
        "auto",
        check=_directions,
        metavar="auto|none|N",
        help="Principal directions that wide rows are projected on.",
        read=whole_or_text,
    ),
    effort=Parameter(DEFAULT_EFFORT, choices=tuple(EFFORTS), help="What may be spent on accuracy."),
    solver=Parameter(
        "closed_form",
        choices=("closed_form", "iterative"),
        help="Exact solution, or the paper's iteration.",
    ),
    max_iter=Parameter(10_000, check=positive_integer),
    tol=Parameter(1e-7, check=positive),
    factor_params=Parameter(
        check=_dict,
        metavar="NAME=VALUE,...",
        help="Finer settings of the factor: n_nearest, bandwidth_factor; shift; start, max_iter, "
        "tol (GLNP).",
        read=named_values,
    ),
    random_state=Parameter(0, check=seed_from, flag="--seed", metavar="N", help="Seed.", least=0),
)
"""Parameters of the estimators, in the order of their options."""

MACHINE = _panel(
    "Machine",
    memory=Parameter(
        "auto",
        check=_memory,
        metavar="SIZE",
        help="Memory that the whole process may take, such as 4GB; auto is half of what is free.",
    ),
    threads=Parameter(
        metavar="N",
        help="Threads; by default one a core, as far as memory allows.",
        read=int,
        least=1,
    ),
    engine=Parameter(
        "threads",
        metavar="threads|serial|mpi|dask",
        help="What runs the work; the answer is the same.",
    ),
    device=Parameter(
        "cpu",
        check=_device,
        metavar="cpu|cuda|auto",
        help="Where the arithmetic runs; auto is the GPU where it is worth it.",
    ),
    gpu_memory=Parameter(
        "auto",
        check=unless_auto(_memory),
        metavar="SIZE",
        help="Memory of the GPU that may be taken; auto is most of it.",
    ),
    precision=Parameter(
        "float32",
        choices=("float32", "tf32"),
        help="Products on a GPU; tf32 is faster, less exact.",
    ),
)
"""What the work may use."""

RESULTS = _panel(
    OUTPUT,
    output_format=Parameter(
        "auto",
        metavar="auto|npy|parquet|csv|jsonl",
        help="Format of the labels in a folder; auto is Parquet for tables, else .npy.",
    ),
    probabilities=Parameter(False, help="Also write class probabilities."),
    top=Parameter(
        metavar="K",
        help="Also write the K likeliest classes and their probabilities.",
        read=int,
        least=1,
    ),
    confidence=Parameter(False, help="Also write the probability of the chosen class."),
    resume=Parameter(False, help="Go on where an interrupted run stopped."),
    overwrite=Parameter(False, help="Replace earlier results."),
)
"""What is written for each row, and what happens to earlier results."""

PRINTING = _panel(
    OUTPUT,
    as_json=Parameter(False, flag="--json", help="Print the summary as JSON, for scripts."),
    quiet=Parameter(False, flag="--quiet -q", help="Print nothing but errors."),
    no_progress=Parameter(False, help="Draw no progress bars; results are printed."),
    debug=Parameter(False, help="Show where an error came from."),
)
"""What is printed."""

TASKS = _panel(
    OUTPUT,
    task_format=Parameter(
        choices=("biglp._jobs.tasks:TASK_FORMATS",),
        flag="--format",
        metavar="csv|jsonl|label-studio|argilla",
        help="Format of the file: a table, lines of JSON, or tasks of a labelling tool, whose "
        "export biglp fit --labels reads; by default as the file is called.",
    ),
)
"""Rows to label."""

PARAMETERS = LABELS | READING | METHOD | MACHINE | RESULTS | PRINTING | TASKS
"""Every parameter by its name."""

PLACING = ("device", "gpu_memory", "precision", "memory")
"""Parameters of the estimators that say where the work is done."""
ESTIMATOR = (*METHOD, *PLACING)
"""Parameters that a graph and its labels are settled by."""


def checked(name: str, value: Any) -> Any:
    """A parameter's value as the work needs it.

    Raises
    ------
    ParameterError
        Naming the parameter, the value found and the values allowed.
    """
    return PARAMETERS[name].checked(name, value)


def defaults(names: Iterable[str]) -> dict[str, Any]:
    """The defaults of some parameters."""
    return {name: PARAMETERS[name].default for name in names}


def chosen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that are not the defaults; None is no choice."""

    def is_chosen(name: str, value: Any) -> bool:
        default = PARAMETERS[name].default
        return value is not None and (type(value) is not type(default) or value != default)

    return {name: value for name, value in values.items() if is_chosen(name, value)}


def flags_of(name: str, parameter: Parameter | None = None) -> list[str]:
    """Names of a parameter's option, the long one first."""
    parameter = parameter or PARAMETERS.get(name, Parameter())
    return parameter.flag.split() or [f"--{name.replace('_', '-')}"]
