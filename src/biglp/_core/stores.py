"""Files in object stores (``s3://``, ``gs://``, ``hdfs://`` …), reached through ``pyarrow.fs``.

Every request goes through :func:`retried`: what may pass by itself (a connection that breaks, 503,
an answer that is too short) is tried again after a pause, and what stays wrong becomes one message.
Credentials are those of the usual environment variables and files; a URI may carry options as in
``s3://bucket/rows.npy?endpoint_override=localhost:9000&scheme=http``.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from biglp._core.errors import BadRowsError, MissingExtraError, ParameterError, StoreError

logger = logging.getLogger("biglp")

DELAYED_OPEN = 21
"""pyarrow from which on an S3 store may open a file when it is full, or closed."""
TRIES = 6
"""How often a request is made before it is given up."""
FIRST_PAUSE = 0.25
"""Seconds before the second try; each pause is twice as long as the one before."""
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0
FOR_S3: dict[str, Callable[[str], Any]] = {
    "region": str,
    "scheme": str,
    "endpoint_override": str,
    "tls_ca_file_path": str,
    "anonymous": lambda text: text.lower() == "true",
    "force_virtual_addressing": lambda text: text.lower() == "true",
    "allow_bucket_creation": lambda text: text.lower() == "true",
}
"""Options that an s3:// URI may carry, as pyarrow names them."""
LASTING = re.compile(
    r"ACCESS_DENIED|NO_SUCH|INVALID_ACCESS_KEY|SIGNATURE|HTTP status 4(?!08|29)\d\d"
)
"""Errors that trying again does not change."""

Result = TypeVar("Result")


class Stamp(NamedTuple):
    """What tells one version of a file in a store from another.

    Attributes
    ----------
    size : int
    tag : str
        The store's ETag, or the time of writing where it has none.
    """

    size: int
    tag: str

    def __str__(self) -> str:
        return f"{self.size:,} bytes, ETag {self.tag}"

    @property
    def md5(self) -> str | None:
        """MD5 of the content, where the tag is one: files that were uploaded in one part."""
        return self.tag if re.fullmatch(r"[0-9a-f]{32}", self.tag) else None


class ShortAnswerError(OSError):
    """A store sent fewer bytes than it has."""


def filesystem(scheme: str, host: str, query: str) -> tuple[Any, str]:
    """Return pyarrow's file system of a URI, and the path of the URI's first folder in it."""
    try:
        return _filesystem(scheme, host, query)
    except ImportError as error:
        raise MissingExtraError(
            f"{scheme}://{host} is reached through pyarrow, which cannot do that here ({error}); "
            "install it with: pip install pyarrow."
        ) from error
    except (StoreError, ParameterError):
        raise
    except (OSError, ValueError, NotImplementedError) as error:
        raise ParameterError(
            f"{scheme}://{host} cannot be used: {one_line(error)}. URIs may begin with s3://, "
            "gs://, abfs://, hdfs:// or file://, as far as pyarrow was built with them."
        ) from error


@lru_cache(maxsize=32)
def _filesystem(scheme: str, host: str, query: str) -> tuple[Any, str]:
    import pyarrow as pa
    from pyarrow import fs

    if scheme != "s3":
        found, root = fs.FileSystem.from_uri(f"{scheme}://{host}/{query and '?'}{query}")
        return found, root
    given = dict(parse_qsl(query))
    unknown = sorted(given.keys() - FOR_S3.keys())
    if unknown:
        raise ParameterError(
            f"s3://{host}?{query}: {unknown[0]!r} is not known; after the question mark may stand "
            f"{', '.join(FOR_S3)}."
        )
    options: dict[str, Any] = {name: FOR_S3[name](text) for name, text in given.items()}
    endpoint = s3_endpoint(query)
    if endpoint is not None:
        options["scheme"], _, options["endpoint_override"] = endpoint.partition("://")
    elif not {"region", "AWS_REGION", "AWS_DEFAULT_REGION"} & {*options, *os.environ}:
        options["region"] = retried(f"s3://{host}", "reached", lambda: fs.resolve_s3_region(host))
    if int(pa.__version__.partition(".")[0]) >= DELAYED_OPEN:
        options["allow_delayed_open"] = True  # a small file is then sent whole by one request
    return fs.S3FileSystem(
        **options,
        connect_timeout=CONNECT_SECONDS,
        request_timeout=ANSWER_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=2),
    ), host


def s3_endpoint(query: str) -> str | None:
    """Address of an S3 server, from a URI's options or ``AWS_ENDPOINT_URL``; None for Amazon's."""
    given = dict(parse_qsl(query))
    named = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    endpoint = given.get("endpoint_override") or named
    if not endpoint:
        return None
    scheme, mark, host = endpoint.rstrip("/").partition("://")
    if not mark:
        scheme, host = given.get("scheme", "https"), scheme
    return f"{scheme}://{host}"


def retried(name: str, done: str, action: Callable[[], Result]) -> Result:
    """Ask a store, again where that may help.

    Parameters
    ----------
    name : str
        The file.
    done : str
        What was to be done to it: "read", "written", "listed".
    action : callable

    Raises
    ------
    FileNotFoundError
        Where there is no such file: the caller says what it was to be.
    StoreError
        When it did not work, with what to do.
    """
    began = time.monotonic()
    for attempt in range(1, TRIES + 1):
        try:
            return action()
        except FileNotFoundError:
            raise
        except OSError as error:
            lasting = isinstance(error, PermissionError) or LASTING.search(str(error)) is not None
            if lasting or attempt == TRIES:
                raise _given_up(name, done, error, attempt, time.monotonic() - began) from error
            logger.info("%s: %s; trying again", name, one_line(error))
        time.sleep(FIRST_PAUSE * 2 ** (attempt - 1))
    raise AssertionError


def _given_up(name: str, done: str, error: Exception, tries: int, seconds: float) -> StoreError:
    if tries < TRIES:
        return StoreError(
            f"{name} could not be {done}: {one_line(error)}. Check the address, and that the "
            "credentials (AWS_ACCESS_KEY_ID, AWS_PROFILE and the like) allow it."
        )
    return StoreError(
        f"{name} could not be {done}: {one_line(error)}. It was tried {tries} times in "
        f"{seconds:.0f} s. Check the connection and the store, then run the same again (on the "
        "command line with --resume, which goes on with what is finished)."
    )


def no_such_file(name: str) -> BadRowsError:
    """Explain that a store has no such file."""
    return BadRowsError(f"there is no file {name}; check the address, and that the store has it.")


def one_line(error: Exception) -> str:
    """What an error says, short and on one line."""
    text = " ".join(str(error).split()).rstrip(".")
    return text if len(text) <= 300 else text[:297] + "..."
