"""Every parameter by name: its default, how a value is checked, and its option.

Estimators, jobs and command line have them from here. ``biglp --help`` is written from this table,
so that nothing heavy is loaded; registries of the rooms above are asked when one of their names is.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Final

from biglp._core import looked_up
from biglp._core.errors import ParameterError
from biglp._core.size import DEFAULT_EFFORT, EFFORTS

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


WHOLE = "an integer of 1 or more"
NUMBERS: dict[str, tuple[type, float, float]] = {
    WHOLE: (int, 1, math.inf),
    "an integer of 0 or more": (int, 0, math.inf),
    "a finite number above 0": (float, math.ulp(0.0), sys.float_info.max),
    "a finite number of 0 or more": (float, 0, sys.float_info.max),
    "a number from 0 to 1": (float, 0, 1),
}
"""What messages say of numbers, and what it means: type, least and most."""


def number(name: str, value: Any, allowed: str = WHOLE) -> Any:
    """Check a number."""
    kind, least, most = NUMBERS[allowed]
    known: type = numbers.Integral if kind is int else numbers.Real
    switch = kind is int and isinstance(value, bool)
    if switch or not isinstance(value, known) or not least <= kind(value) <= most:
        raise ParameterError(f"{name}={value!r} cannot be used; give {allowed}.")
    return kind(value)


positive_integer = partial(number, allowed=WHOLE)
not_negative_integer = partial(number, allowed="an integer of 0 or more")
positive = partial(number, allowed="a finite number above 0")
not_negative = partial(number, allowed="a finite number of 0 or more")
probability = partial(number, allowed="a number from 0 to 1")


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


def _projection(name: str, value: Any) -> tuple[int | None, str | None]:
    """Number of directions (None is "auto", 0 is "none"), and the transform that is named."""
    if isinstance(value, str) and value in ("auto", "none"):
        return (None if value == "auto" else 0), None
    own = looked_up("biglp._transforms.base:OWN")
    embedders = [one for one in looked_up("biglp._transforms:TRANSFORMS") if one not in own]
    if isinstance(value, str) and value in embedders:
        return None, value
    try:
        return number(name, value), None
    except ParameterError:
        known = "".join(f"{one!r}, " for one in ("auto", *embedders))
        raise ParameterError(
            f"{name}={value!r} cannot be used; give {known}'none' or a number of directions, an "
            "integer of 1 or more."
        ) from None


def _elsewhere(address: str, name: str, value: Any) -> Any:
    """A check that needs the system or NumPy, which help texts do without."""
    return looked_up(address)(value, name)


_memory = partial(_elsewhere, "biglp._core.memory:parse_memory")
_device = partial(_elsewhere, "biglp._core.arrays:require_device")


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


def class_names(text: str) -> Any:
    """Read names of classes: a list of them, or a CSV file with a description of each."""
    import csv
    from pathlib import Path

    if not text.lower().endswith((".csv", ".tsv", ".txt")):
        return list(column_names(text))
    try:
        with Path(text).open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if any(map(str.strip, line))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{text} cannot be read ({error}); give a CSV of class,description."
        ) from None
    if lines and [name.strip().lower() for name in lines[0][:1]] == ["class"]:
        lines = lines[1:]
    wrong = [line for line in lines if len(line) != 2]
    if wrong:
        raise ValueError(
            f"{text} has the line {','.join(wrong[0])!r}; give two columns, class,description, "
            "with quotes around a description that holds a comma."
        )
    if len({name for name, _ in lines}) < len(lines):
        raise ValueError(f"{text} names a class twice; give one line for each class.")
    return {name.strip(): description.strip() for name, description in lines}


def class_vectors(text: str) -> Any:
    """Read vectors of classes: a Parquet file with the columns class and embedding."""
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(text)
        names, vectors = (table.column(name).to_pylist() for name in ("class", "embedding"))
    except Exception as error:  # pyarrow raises many
        raise ValueError(
            f"{text} cannot be read ({error}); give a Parquet file with the columns class and "
            "embedding."
        ) from None
    if len(set(names)) < len(names):
        raise ValueError(f"{text} names a class twice; give one line for each class.")
    return dict(zip(names, vectors, strict=True))


def _class_vectors(name: str, value: Any) -> Any:
    """Vectors by the class's value, as lists of numbers."""
    if value is None:
        return None
    import numpy as np

    if not isinstance(value, dict) or len(value) < 2:
        raise ParameterError(
            f"{name} must be a dict with a vector for each of two classes or more."
        )
    try:
        vectors = {key: np.asarray(vector, dtype=np.float64) for key, vector in value.items()}
    except (TypeError, ValueError):
        vectors = {}
    shapes = {vector.shape for vector in vectors.values()}
    if len(shapes) != 1 or len(shape := next(iter(shapes))) != 1:
        raise ParameterError(f"{name} must hold one vector of numbers a class, all of one length.")
    if not all(np.isfinite(vector).all() and vector.any() for vector in vectors.values()):
        raise ParameterError(
            f"{name} holds a vector of {shape[0]} numbers that has no direction: NaN, infinity or "
            "zeros throughout; make it again."
        )
    return {key: vector.tolist() for key, vector in vectors.items()}


def _class_names(name: str, value: Any) -> Any:
    """Descriptions by the class's value; None stands for a class that is only named."""
    if value is None:
        return None
    if isinstance(value, dict):
        names = dict(value)
    else:
        listed = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(listed, str) or not isinstance(listed, (list, tuple)):
            raise ParameterError(
                f"{name}={value!r} cannot be used; give a list of the classes' names, or a dict "
                "with a description of each."
            )
        names = dict.fromkeys(listed)
        if len(names) < len(listed):
            raise ParameterError(f"{name}={listed!r} names a class twice; name each once.")
    if len(names) < 2:
        raise ParameterError(
            f"{name}={value!r} names {len(names)} class; there must be at least two."
        )
    for key, text in names.items():
        if not str(key).strip() or (text is not None and not str(text).strip()):
            raise ParameterError(f"{name}={value!r} has an empty name; say in words what it means.")
    described = [str(text).casefold().strip() for text in names.values() if text is not None]
    if len(set(described)) < len(described):
        raise ParameterError(
            f"{name}={value!r} describes two classes in the same words; nothing tells them apart."
        )
    return names


def named_values(text: str) -> dict[str, Any]:
    """Read ``name=value,name=value``, where values may be numbers, true or false, or words."""
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not (name and equals and value):
            raise ValueError(f"{part!r} is not NAME=VALUE, such as max_iter=2000.")
        switch = {"true": True, "false": False}.get(value.lower())
        values[name] = number_or_text(value, (int, float)) if switch is None else switch
    return values


def number_or_text(text: str, kinds: tuple[type, ...] = (int,)) -> Any:
    """Read a number of the first kind that the text is, whole by default; text otherwise."""
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def tab_or_text(text: str) -> str:
    """Read a delimiter; a tab may be written as a word or as in Python."""
    return "\t" if text in ("tab", "\\t") else text


# The table.

REQUIRED: Final = object()
"""The default of an option that must be given."""


@dataclass(frozen=True)
class Parameter:
    """What is known of a parameter; one without a help text is no option."""

    default: Any = None
    help: str = ""
    # What stands for the value in a help text; by default the choices, but a registry that takes a
    # while to load is not asked for it. A shell completes words between bars.
    metavar: str = ""
    _: KW_ONLY
    check: Check | None = None  # check(name, value): the value as the work needs it, or an error
    auto: bool = False  # whether it may be left to biglp, which is None from there on
    # Words that it may be where it is text, or at all where there is no check; "module:NAME" stands
    # for the names of a registry.
    choices: tuple[str, ...] = ()
    flag: str = ""  # names of the option, where it is not called after the parameter: "--number -n"
    read: Callable[[str], Any] | None = None  # from text; by default to the type of the default
    many: bool = False  # may be given several times
    least: float | None = None  # limits of a number, which the help text names
    most: float | None = None
    panel: str | None = None  # heading in the help text

    @property
    def words(self) -> tuple[str, ...]:
        """The choices, with the names of registries."""
        words: list[str] = []
        for choice in self.choices:
            words += looked_up(choice) if ":" in choice else (choice,)
        return tuple(words)


def group(panel: str | None, **parameters: Parameter) -> dict[str, Parameter]:
    """Parameters whose options stand together in a help text."""
    return {name: replace(parameter, panel=panel) for name, parameter in parameters.items()}


ROWS, METHOD_PANEL, OUTPUT = "Reading the rows", "Method", "Output"

LABELS = group(
    ROWS,
    labels=Parameter(
        None,
        "Labels: one a row (-1 or empty where there is none), 'row,label', 'id,label', each "
        "with a weight or without, or an export of Label Studio or Argilla. May be given several "
        "times, and beside --label-column: the last label of a row counts.",
        "FILE",
        many=True,
    ),
    label_column=Parameter(None, "Column that holds labels.", "NAME"),
    id_column=Parameter(
        None, "Column that holds the rows' IDs: labels are joined by it, results carry it.", "NAME"
    ),
    weight_column=Parameter(None, "Column that holds the weights of the labels.", "NAME"),
    unlabelled=Parameter(
        None,
        "What marks a row without a label, beside empty: by default -1 and what programs "
        "write for a missing value (NA, null, ?, …). May be given several times.",
        "VALUE",
        read=number_or_text,
        many=True,
    ),
)
"""Where the labels are."""

READING = group(
    ROWS,
    columns=Parameter(None, "Feature columns; all by default.", "A,B,...", read=column_names),
    drop=Parameter(None, "Columns that are no features.", "A,B,...", read=column_names),
    categorical=Parameter(
        "auto",
        "Text columns: auto takes each for what it is (few or many categories, dates, names "
        "of the rows), onehot makes a feature of each category, error refuses text.",
        choices=("auto", "onehot", "error"),
    ),
    text=Parameter(
        None,
        "Columns of sentences, whose words are counted; left out without this.",
        "A,B,...",
        read=column_names,
    ),
    text_model=Parameter(
        "auto",
        "What says what texts mean, beside their words: a folder as model2vec saves it, auto for "
        "that of biglp[text] where it is installed, or none.",
        "FOLDER",
    ),
    missing=Parameter(
        "auto",
        "Missing values: auto fills in the median and marks them, mean fills in the mean, "
        "error refuses them.",
        choices=("auto", "mean", "error"),
    ),
    delimiter=Parameter(
        None, "Delimiter of a text table; found by looking by default.", "CHAR", read=tab_or_text
    ),
    decimal=Parameter(
        None, "Decimal mark of a text table; found by looking by default.", choices=(".", ",")
    ),
    text_encoding=Parameter(
        None,
        "Encoding of a text table, such as cp1252; found by looking by default.",
        "NAME",
        flag="--encoding",
    ),
    dtype=Parameter(
        None, "Precision of a table's rows; float64 for text.", choices=("float32", "float64")
    ),
    metadata=Parameter(None, "Table beside the rows that has their labels.", "FILE"),
    cache=Parameter(
        None,
        "Where tables are converted and files of stores copied; by the output by default.",
        "FOLDER|never",
    ),
)
"""How the rows are read."""

STRICT = group(
    ROWS,
    strict=Parameter(
        False,
        "Refuse rows and labels of which anything would be left out or filled in; by default it "
        "is counted and told.",
        check=true_or_false,
    ),
)
"""Whether anything may be left out or filled in."""

METHOD = group(
    METHOD_PANEL,
    factor=Parameter(
        "auto", "Low-rank graph; auto is anchors.", choices=("auto", "biglp._graph:FACTORS")
    ),
    n_landmarks=Parameter(
        "auto",
        "Number of landmarks.",
        "K",
        auto=True,
        check=positive_integer,
        flag="--n-landmarks -k",
        read=auto_or(int),
    ),
    landmarks=Parameter(
        "kmeans",
        "How landmarks are chosen: k-means on a sample or on all rows, or random rows.",
        "kmeans|kmeans-full|random",
    ),
    bandwidth=Parameter(
        "auto",
        "Width of the Gaussian kernel.",
        "SIGMA",
        auto=True,
        check=positive,
        read=auto_or(float),
    ),
    alpha=Parameter(
        "auto",
        "How far labels spread, between 0 and 1.",
        "ALPHA",
        auto=True,
        check=partial(fraction, also="'auto' or "),
        read=auto_or(float),
    ),
    class_balance=Parameter(  # priors are checked once the number of classes is known
        "auto",
        "Weight of the classes: equal (mass), answers as frequent as labels (share), labels "
        "less their mean (centre), as it comes (none), or their shares.",
        "auto|mass|share|centre|none|P,Q,...",
        check=anything,
        choices=("auto", "mass", "share", "centre", "none"),
        read=balance,
    ),
    filter=Parameter(
        "auto",
        "How labels spread; auto is the committee, or spreading with a factor.",
        choices=("auto", "biglp._learn:FILTERS"),
    ),
    clamp=Parameter(
        "soft",
        "Whether labelled rows keep their labels (hard), or can be overruled (soft).",
        choices=("soft", "hard"),
    ),
    scaling=Parameter(
        "auto",
        "Scaling of the features; auto looks at what they are.",
        "auto|none|standard|minmax|log|unit|text|table",
        choices=("biglp._transforms:SCALINGS",),
    ),
    projection=Parameter(
        "auto",
        "Principal directions that wide rows are projected on.",
        "auto|none|N",
        check=_projection,
        read=number_or_text,
    ),
    effort=Parameter(DEFAULT_EFFORT, "What may be spent on accuracy.", choices=tuple(EFFORTS)),
    classes=Parameter(
        None,
        "Names of the classes: from these alone rows get their first labels, where texts are "
        "understood. A list, or a CSV file of class,description: the class is what labels call it.",
        "A,B,...|FILE",
        check=_class_names,
        read=class_names,
    ),
    class_vectors=Parameter(
        None,
        "Vectors of the classes, made as the rows' embeddings were: from these alone rows get "
        "their first labels. A Parquet file with the columns class and embedding.",
        "FILE",
        check=_class_vectors,
        read=class_vectors,
    ),
    solver=Parameter(
        "closed_form",
        "Exact solution, or the paper's iteration.",
        choices=("closed_form", "iterative"),
    ),
    max_iter=Parameter(10_000, check=positive_integer),
    tol=Parameter(1e-7, check=positive),
    factor_params=Parameter(
        None,
        "Finer settings of the factor: n_nearest, bandwidth_factor; shift; start, max_iter, "
        "tol (GLNP).",
        "NAME=VALUE,...",
        read=named_values,
    ),
    random_state=Parameter(0, "Seed.", "N", check=seed_from, flag="--seed", least=0),
)
"""Parameters of the estimators, in the order of their options."""

MACHINE = group(
    "Machine",
    memory=Parameter(
        "auto",
        "Memory that the whole process may take, such as 4GB; auto is half of what is free.",
        "SIZE",
        check=_memory,
    ),
    threads=Parameter(
        None, "Threads; by default one a core, as far as memory allows.", "N", read=int, least=1
    ),
    engine=Parameter(
        "threads", "What runs the work; the answer is the same.", "threads|serial|mpi|dask"
    ),
    device=Parameter(
        "cpu",
        "Where the arithmetic runs; auto is the GPU where it is worth it.",
        "cpu|cuda|auto",
        check=_device,
    ),
    gpu_memory=Parameter(
        "auto",
        "Memory of the GPU that may be taken; auto is most of it.",
        "SIZE",
        auto=True,
        check=_memory,
    ),
    precision=Parameter(
        "float32", "Products on a GPU; tf32 is faster, less exact.", choices=("float32", "tf32")
    ),
)
"""What the work may use."""

RESULTS = group(
    OUTPUT,
    output_format=Parameter(
        "auto",
        "Format of the labels in a folder; auto is Parquet for tables, else .npy.",
        "auto|npy|parquet|csv|jsonl",
    ),
    probabilities=Parameter(False, "Also write class probabilities."),
    top=Parameter(
        None, "Also write the K likeliest classes and their probabilities.", "K", read=int, least=1
    ),
    confidence=Parameter(
        None,
        "Write the probability of the chosen class too; by default in tables, not beside .npy.",
        flag="--confidence/--no-confidence",
        read=bool,
    ),
    resume=Parameter(False, "Go on where an interrupted run stopped."),
    overwrite=Parameter(False, "Replace earlier results."),
)
"""What is written for each row, and what happens to earlier results."""

PRINTING = group(
    OUTPUT,
    as_json=Parameter(False, "Print the summary as JSON, for scripts.", flag="--json"),
    quiet=Parameter(False, "Print nothing but errors.", flag="--quiet -q"),
    no_progress=Parameter(False, "Draw no progress bars; results are printed."),
    debug=Parameter(False, "Show where an error came from."),
)
"""What is printed."""

TASKS = {
    "least": Parameter(
        None,
        "List labels that are wrong with at least this probability; by default all for which "
        "another label is likelier.",
        "P",
        check=probability,
        read=float,
        least=0.0,
        most=1.0,
        panel=METHOD_PANEL,
    ),
    "task_format": Parameter(
        None,
        "Format of the file: a table, lines of JSON, or tasks of a labelling tool, whose "
        "export biglp fit --labels reads; by default as the file is called.",
        "csv|jsonl|label-studio|argilla",
        choices=("biglp._labels.tools:TASK_FORMATS",),
        flag="--format",
        panel=OUTPUT,
    ),
}
"""Which rows people are to look at, and for which tool."""

PARAMETERS = LABELS | READING | STRICT | METHOD | MACHINE | RESULTS | PRINTING | TASKS
"""Every parameter by its name."""

PLACING = ("device", "gpu_memory", "precision", "memory")
"""Parameters of the estimators that say where the work is done."""
DEFAULTS = {name: PARAMETERS[name].default for name in (*METHOD, *PLACING)}
"""The parameters that settle a fit. scikit-learn wants their defaults in the estimators' signatures
as well; a test keeps the two alike."""


def checked(name: str, value: Any) -> Any:
    """A parameter's value as the work needs it; ParameterError says what is allowed."""
    parameter = PARAMETERS[name]
    if parameter.auto and isinstance(value, str) and value == "auto":
        return None
    if parameter.choices and (parameter.check is None or isinstance(value, str)):
        return one_of(name, value, parameter.words)
    return value if parameter.check is None else parameter.check(name, value)


def chosen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that are not the defaults; None is no choice."""
    options = {}
    for name, value in values.items():
        default = PARAMETERS[name].default
        if value is not None and (type(value) is not type(default) or value != default):
            options[name] = value
    return options


def flags_of(name: str, parameter: Parameter | None = None) -> list[str]:
    """Names of a parameter's option, the long one first."""
    parameter = parameter or PARAMETERS.get(name, Parameter())
    return parameter.flag.split() or [f"--{name.replace('_', '-')}"]
