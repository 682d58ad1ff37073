"""Where a file is: on this machine (:class:`pathlib.Path`) or in a store (:class:`StorePath`).

:func:`as_place` makes one or the other of what a user typed. Both have the few methods that biglp
uses, so that most code need not know which of the two it has.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import logging
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from biglp._core.errors import (
    BadRowsError,
    MissingExtraError,
    OutputError,
    ParameterError,
    StoreError,
)

if TYPE_CHECKING:
    import numpy as np


# --------------------------------------------------------------------------------------------------
# Files in object stores (``s3://``, ``gs://``, ``hdfs://`` …), reached through ``pyarrow.fs``.
#
# Every request goes through :func:`retried`: what may pass by itself (a connection that breaks,
# 503, an answer that is too short) is tried again after a pause, and what stays wrong becomes one
# message. Credentials are those of the usual environment variables and files; a URI may carry
# options as in ``s3://bucket/rows.npy?endpoint_override=localhost:9000&scheme=http``.


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


# --------------------------------------------------------------------------------------------------


SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
QUERY = re.compile(r"\?(?=[A-Za-z_]+=)")
"""Where the options of a URI begin; a question mark elsewhere belongs to a pattern."""
PIECE_BYTES = 8 << 20
LOOKS_AT_ONCE = 16
MARK_BYTES = 16
WHOLE_PUTS = ("s3",)
"""Stores in which a file appears when it is complete, and not before."""


def is_uri(path: Any) -> bool:
    """Whether a path names a file in a store (``file://`` is one too)."""
    return isinstance(path, StorePath) or (isinstance(path, str) and bool(SCHEME.match(path)))


def as_place(path: str | os.PathLike[str] | StorePath) -> Any:
    """Return a ``Path`` for a local name or a ``file://`` URI, else a :class:`StorePath`."""
    if isinstance(path, StorePath):
        return path
    text = os.fspath(path)
    if not SCHEME.match(text):
        return Path(path)
    parts = urlsplit(text)
    if parts.scheme.lower() == "file":
        if parts.netloc not in ("", "localhost"):
            raise ParameterError(
                f"{text}: a file:// URI needs three slashes, as in file:///data/x."
            )
        return Path(unquote(parts.path))
    return StorePath.of(text)


def plain_name(path: str | os.PathLike[str] | StorePath) -> str:
    """The name by which a run remembers a file: absolute, or a URI."""
    place = as_place(path)
    return str(place) if isinstance(place, StorePath) else os.path.abspath(place)


@dataclass(frozen=True)
class StorePath:
    """A file or folder in a store, with the part of ``pathlib.Path`` that biglp uses.

    Attributes
    ----------
    scheme, host : str
        ``s3`` and the bucket.
    path : str
        Name below that, without a slash at either end.
    query : str
        Options after the question mark.
    """

    scheme: str
    host: str
    path: str
    query: str = ""

    @classmethod
    def of(cls, uri: str) -> StorePath:
        """Take a URI apart; names are taken as they are, without %-codes, as ``aws s3`` does."""
        scheme, _, rest = uri.partition("://")
        name, *query = QUERY.split(rest, maxsplit=1)
        host, _, path = name.partition("/")
        if ":" in host.rpartition("@")[0]:
            raise ParameterError(
                f"{scheme}://…@{host.rpartition('@')[2]}: keys in an address end up in summaries "
                "and logs; give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        if not host and scheme in ("s3", "gs"):
            raise ParameterError(f"{uri} names no bucket; write {scheme}://bucket/name.")
        return cls(scheme.lower(), host, path.strip("/"), query[0] if query else "")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}/{self.path}{self.query and '?'}{self.query}"

    def __truediv__(self, name: str) -> StorePath:
        return replace(self, path=f"{self.path}/{name}".strip("/"))

    @property
    def name(self) -> str:
        """Last part of the name."""
        return PurePosixPath(self.path).name or self.host

    @property
    def stem(self) -> str:
        """Last part without its ending."""
        return PurePosixPath(self.path).stem

    @property
    def suffix(self) -> str:
        """Ending."""
        return PurePosixPath(self.path).suffix

    @property
    def parent(self) -> StorePath:
        """Folder."""
        return replace(self, path=self.path.rpartition("/")[0])

    def with_name(self, name: str) -> StorePath:
        """Another file of the same folder."""
        return self.parent / name

    def exists(self) -> bool:
        """Whether there is such a file or folder."""
        return self._kind() != "NotFound"

    def is_dir(self) -> bool:
        """Whether there are files below this name."""
        return self._kind() == "Directory"

    def is_file(self) -> bool:
        """Whether it is a file."""
        return self._kind() == "File"

    def _kind(self) -> str:
        found, path = self._reached()
        info = retried(str(self), "reached", lambda: found.get_file_info(path))
        return str(info.type.name)

    def files(self) -> list[str]:
        """Names of all files below this folder, relative to it, in order."""
        from pyarrow.fs import FileSelector, FileType

        found, path = self._reached()
        chosen = FileSelector(path, allow_not_found=True, recursive=True)
        infos = retried(str(self), "listed", lambda: found.get_file_info(chosen))
        start = len(path.rstrip("/")) + 1
        return sorted(info.path[start:] for info in infos if info.type == FileType.File)

    def stamp(self) -> Stamp:
        """Size and tag of the file as it is now."""
        found, path = self._reached()

        def look() -> Stamp:
            with found.open_input_file(path) as file:
                facts = {name.lower(): value for name, value in (file.metadata() or {}).items()}
                size = int(file.size())
            tag = facts.get("etag", b"").decode().strip('"')
            return Stamp(size, tag or str(found.get_file_info(path).mtime_ns))

        try:
            return retried(str(self), "read", look)
        except FileNotFoundError as error:
            raise no_such_file(str(self)) from error

    def reader(self) -> Any:
        """Open the file for :meth:`read_part`, for one thread."""
        found, path = self._reached()
        return retried(str(self), "read", lambda: found.open_input_file(path))

    def read_part(self, file: Any, start: int, stop: int) -> np.ndarray:
        """Read bytes ``start`` to ``stop`` of an open file; fewer are an error.

        pyarrow does not notice when an S3 server sends less than it was asked for: the rest of its
        buffer is then what was there before. Random bytes at the end of ours tell.
        """
        import numpy as np  # not above: help texts do without it

        def read() -> np.ndarray:
            data = np.empty(stop - start, dtype=np.uint8)
            mark = np.frombuffer(secrets.token_bytes(MARK_BYTES), np.uint8)[: len(data)]
            data[len(data) - len(mark) :] = mark
            file.seek(start)
            count = file.readinto(data)
            if count != len(data) or (len(mark) and (data[-len(mark) :] == mark).all()):
                raise ShortAnswerError(
                    f"fewer than the {len(data):,} bytes came that were asked for from byte "
                    f"{start:,} on"
                )
            return data

        return retried(str(self), "read", read)

    def read_bytes(self) -> bytes:
        """Read a small file as a whole."""
        size = self.stamp().size
        with self.reader() as file:
            return self.read_part(file, 0, size).tobytes()

    def read_text(self, encoding: str = "utf-8") -> str:
        """Read a small file of text."""
        return self.read_bytes().decode(encoding)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""
        found, path = self._reached()
        try:
            retried(str(self), "removed", lambda: found.delete_file(path))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def upload(self, local: Path) -> None:
        """Store a finished local file under this name, whole or not at all."""
        try:
            retried(str(self), "written", lambda: self._put(local))
        except FileNotFoundError as error:
            raise OutputError(
                f"{self} could not be written: {error}. Check that the bucket or folder exists."
            ) from error

    def _put(self, local: Path) -> None:
        found, path = self._reached()
        direct = self.scheme in WHOLE_PUTS
        target = path if direct else f"{path}.part"
        size = local.stat().st_size
        if not direct:
            found.create_dir(target.rpartition("/")[0], recursive=True)
        stream = found.open_output_stream(target)
        try:
            with local.open("rb") as file:
                while piece := file.read(PIECE_BYTES):
                    stream.write(piece)
            stream.close()
        except BaseException:
            # Closing or forgetting a stream completes it, with what was written so far. One more
            # reference than there are keeps it from being forgotten; the store drops the parts.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
            raise
        if not direct:
            found.move(target, path)
        stored = found.get_file_info(path).size
        if stored != size:
            raise ShortAnswerError(f"the store holds {stored} bytes of {size:,}")

    def _reached(self) -> tuple[Any, str]:
        found, root = filesystem(self.scheme, self.host, self.query)
        root = root if root.endswith("/") or not self.path else root + "/"
        return found, (root + self.path).rstrip("/") or root


def stamps_of(places: Sequence[StorePath]) -> list[Stamp]:
    """Look at many files of stores, several at a time."""
    with ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
        return list(pool.map(StorePath.stamp, places))


def open_binary(place: Any) -> IO[bytes]:
    """Open a local file, or a small one of a store."""
    return io.BytesIO(place.read_bytes()) if isinstance(place, StorePath) else open(place, "rb")


def user_cache() -> Path:
    """Folder for what can be made again: ``BIGLP_CACHE``, or the user's on this platform."""
    named = os.environ.get("BIGLP_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "biglp"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "biglp"


def work_folder(place: StorePath, cache: str | None) -> Path:
    """Local folder for unfinished work whose result goes to a store; the same for the same name."""
    named = cache is not None and cache != "never"
    base = Path(cache or "") if named else user_cache() / "runs"
    digest = hashlib.sha256(str(place).encode()).hexdigest()[:12]
    return base / f"{place.name}-{digest}"


# --------------------------------------------------------------------------------------------------
# Names of arrays inside a file: ``rows.h5::name``.


INSIDE = "::"
"""What stands between a file and the name of an array in it."""


def split_inside(path: Any) -> tuple[str, str]:
    """Split ``rows.h5::name`` into the file and ``::name``, which is empty where there is none."""
    path = str(path)
    file, mark, name = path.partition(INSIDE)
    return (path, "") if os.path.exists(path) else (file, mark + name)
