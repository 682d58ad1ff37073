"""Where a file is: on this machine (:class:`pathlib.Path`) or in a store (:class:`StorePath`).

:func:`as_place` makes one or the other of what a user typed. Both have the few methods that biglp
uses, so that most code need not know which of the two it has.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import sys
import time
from collections.abc import Callable
from configparser import ConfigParser
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from biglp._core.errors import (
    BadRowsError,
    BigLPError,
    ParameterError,
    StoreError,
)

# --------------------------------------------------------------------------------------------------
# Files in object stores (``s3://``, ``gs://``, ``abfs://``), reached through obstore.
#
# obstore asks again after a pause where that may help (a connection that breaks, 503), and goes on
# with an answer that broke off. It does not notice an answer that is too short, nor repeat a list
# that cannot be read: :func:`retried` does. What stays wrong becomes one message. Credentials are
# those of the usual environment variables and files; a URI may carry options as in
# ``s3://bucket/rows.npy?endpoint_override=localhost:9000&scheme=http``.


logger = logging.getLogger("biglp")

SCHEMES = ("s3", "gs", "abfs", "abfss", "memory")
TRIES = 6
"""How often a request is made before it is given up."""
FIRST_PAUSE = 0.25
"""Seconds before the second try; each pause is twice as long as the one before."""
FOR_S3 = (
    "region",
    "scheme",
    "endpoint_override",
    "tls_ca_file_path",
    "anonymous",
    "force_virtual_addressing",
)
"""Options that an s3:// URI may carry."""
LASTING = re.compile(r"status code: 4(?!08|29)\d\d")
"""Errors that trying again does not change."""

Result = TypeVar("Result")


class Stamp(NamedTuple):
    """What tells one version of a file in a store from another: its size, and the store's ETag or
    the time of writing.
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


@lru_cache(maxsize=32)
def object_store(scheme: str, host: str, query: str) -> Any:
    """Make obstore's store of a bucket or container."""
    if scheme not in SCHEMES:
        raise ParameterError(
            f"{scheme}://{host} cannot be used: URIs may begin with s3://, gs://, abfs:// or "
            "file://, those of inputs with hf:// too."
        )
    from obstore.exceptions import BaseError
    from obstore.store import S3Store, from_url

    config: Any = dict(parse_qsl(query))
    pauses = {"init_backoff": timedelta(seconds=FIRST_PAUSE), "base": 2}
    retries: Any = {"max_retries": TRIES - 1, "backoff": pauses}
    # A large part may take minutes; a connection on which nothing comes is given up.
    client: Any = {"connect_timeout": "5s", "read_timeout": "30s", "timeout": "1h"}
    try:
        if scheme == "memory":
            return from_url("memory:///")
        if scheme != "s3":
            return from_url(
                f"{scheme}://{host}", config=config, client_options=client, retry_config=retries
            )
        config = _s3_config(host, query, client)
        return S3Store(host, config=config, client_options=client, retry_config=retries)
    except (BaseError, OSError, ValueError) as error:
        if isinstance(error, BigLPError):
            raise
        raise ParameterError(f"{scheme}://{host} cannot be used: {one_line(error)}.") from error


def _s3_config(host: str, query: str, client: dict[str, Any]) -> Any:
    """Options of a bucket; those of the connection are added to ``client``."""
    given = dict(parse_qsl(query))
    unknown = sorted(given.keys() - set(FOR_S3))
    if unknown:
        raise ParameterError(
            f"s3://{host}?{query}: {unknown[0]!r} is not known; after the question mark may stand "
            f"{', '.join(FOR_S3)}."
        )
    # obstore knows the environment, but not the files of ``aws configure``.
    profile = {} if "AWS_ACCESS_KEY_ID" in os.environ else _aws_profile()
    signed_in = profile.keys() & {"role_arn", "sso_session", "sso_start_url"}
    if signed_in and "aws_access_key_id" not in profile and "anonymous" not in given:
        raise ParameterError(
            f"s3://{host}: the AWS profile has no keys but {min(signed_in)}, which is not followed "
            'here; take the keys into the environment by: eval "$(aws configure '
            'export-credentials --format env)".'
        )
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    config: dict[str, Any] = {name: profile[name] for name in names if name in profile}
    config["aws_disable_bulk_delete"] = True  # not every server that speaks S3 has it
    config["aws_skip_signature"] = given.get("anonymous", "").lower() == "true"
    virtual = given.get("force_virtual_addressing", "").lower() == "true"
    endpoint = s3_endpoint(query)
    region = (
        given.get("region")
        or os.environ.get("AWS_REGION")
        or os.environ.get("AWS_DEFAULT_REGION")
        or profile.get("region")
    )
    if endpoint is None and region is None:
        from pyarrow.fs import resolve_s3_region

        region = retried(f"s3://{host}", "reached", lambda: resolve_s3_region(host))
    elif endpoint is not None:
        scheme, _, address = endpoint.partition("://")
        client["allow_http"] = scheme == "http"
        # With virtual addressing the bucket is a part of the server's name.
        config["aws_endpoint_url_s3"] = f"{scheme}://{host}.{address}" if virtual else endpoint
    if "tls_ca_file_path" in given:
        client["root_certificate"] = Path(given["tls_ca_file_path"]).read_bytes()
    return {
        **config,
        "aws_region": region or "us-east-1",
        "aws_virtual_hosted_style_request": virtual,
    }


def _aws_profile() -> dict[str, str]:
    """Keys and region of AWS_PROFILE in the files that ``aws configure`` writes."""
    profile = os.environ.get("AWS_PROFILE", "default")
    facts: dict[str, str] = {}
    for variable, name in (
        ("AWS_CONFIG_FILE", "config"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    ):
        parser = ConfigParser(interpolation=None)
        parser.read(os.environ.get(variable) or Path.home() / ".aws" / name)
        for section in (f"profile {profile}", profile):
            if parser.has_section(section):
                facts |= dict(parser[section])
    return facts


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
    """Ask a store for a file, which is to be ``done`` ("read", "written", "listed").

    That there is no such file is left to the caller, who knows what it was to be.
    """
    from obstore.exceptions import BaseError

    began = time.monotonic()
    for attempt in range(1, TRIES + 1):
        try:
            return action()
        except (FileNotFoundError, BigLPError):
            raise
        except (BaseError, OSError, ValueError) as error:
            text, why = str(error), one_line(error)
            denied = type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError")
            if denied or isinstance(error, ValueError) or LASTING.search(text):
                raise StoreError(
                    f"{name} could not be {done}: {why}. Check the address, and that the "
                    "credentials (AWS_ACCESS_KEY_ID, AWS_PROFILE and the like) allow it."
                ) from error
            if attempt == TRIES or "max_retries" in text:  # obstore has tried as often
                raise StoreError(
                    f"{name} could not be {done}: {why}. It was tried {TRIES} times in "
                    f"{time.monotonic() - began:.0f} s. Check the connection and the store, then "
                    "run the same again (on the command line with --resume, which goes on with "
                    "what is finished)."
                ) from error
            logger.info("%s: %s; trying again", name, why)
        time.sleep(FIRST_PAUSE * 2 ** (attempt - 1))
    raise AssertionError


def no_such_file(name: str) -> BadRowsError:
    """Explain that a store has no such file."""
    return BadRowsError(f"there is no file {name}; check the address, and that the store has it.")


def one_line(error: Exception) -> str:
    """What an error says, short and on one line."""
    text = " ".join(str(error).split()).partition(" Debug source:")[0].rstrip(".: ")
    return text if len(text) <= 300 else text[:297] + "..."


# --------------------------------------------------------------------------------------------------


SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
QUERY = re.compile(r"\?(?=[A-Za-z_]+=)")
"""Where the options of a URI begin; a question mark elsewhere belongs to a pattern."""
PIECE_BYTES = 8 << 20
MOST_PIECES = 9000
"""S3 takes files in 10,000 pieces or fewer."""


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
    """A file or folder in a store, with the part of ``pathlib.Path`` that biglp uses."""

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
        return self.is_file() or self.is_dir()

    def is_dir(self) -> bool:
        """Whether there are files below this name."""
        return bool(self._listed(1))

    def is_file(self) -> bool:
        """Whether it is a file."""
        try:
            return bool(self.path) and bool(retried(str(self), "reached", self._head))
        except FileNotFoundError:
            return False

    def _listed(self, most: int | None = None) -> list[str]:
        """Names of files below this one, relative to it; in no order when only ``most`` of them."""
        import obstore

        store, start = self._store(), len(self.path) + bool(self.path)

        def look() -> list[str]:
            names: list[str] = []
            try:
                for items in obstore.list(store, self.path or None, chunk_size=most or 1000):
                    names += [str(item["path"])[start:] for item in items]
                    if most and len(names) >= most:
                        break
            except obstore.exceptions.GenericError as error:
                if "NoSuchBucket" not in str(error):
                    raise
            return list(filter(None, names))

        return retried(str(self), "listed", look)

    def files(self) -> list[str]:
        """Names of all files below this folder, relative to it, in order."""
        return sorted(self._listed())

    def _head(self) -> Any:
        import obstore

        return obstore.head(self._store(), self.path)

    def stamp(self) -> Stamp:
        """Size and tag of the file as it is now."""
        try:
            facts = retried(str(self), "read", self._head)
        except FileNotFoundError as error:
            raise no_such_file(str(self)) from error
        return Stamp(facts["size"], (facts["e_tag"] or str(facts["last_modified"])).strip('"'))

    def read_part(self, start: int, stop: int) -> Any:
        """Read bytes ``start`` to ``stop``; fewer are an error."""
        import obstore

        def read() -> Any:
            data = obstore.get_range(self._store(), self.path, start=start, end=stop)
            if len(data) != stop - start:
                raise ShortAnswerError(
                    f"fewer than the {stop - start:,} bytes came that were asked for from byte "
                    f"{start:,} on"
                )
            return data

        return retried(str(self), "read", read) if stop > start else b""

    def read_bytes(self) -> bytes:
        """Read a small file as a whole."""
        return bytes(self.read_part(0, self.stamp().size))

    def read_text(self, encoding: str = "utf-8") -> str:
        """Read a small file of text."""
        return self.read_bytes().decode(encoding)

    def unlink(self, missing_ok: bool = True) -> None:
        """Remove the file, if there is one: stores do not tell."""
        import obstore

        with suppress(FileNotFoundError):
            retried(str(self), "removed", lambda: obstore.delete(self._store(), self.path))

    def upload(self, local: Path) -> None:
        """Store a finished local file under this name, whole or not at all."""
        import obstore

        size = local.stat().st_size
        piece = max(PIECE_BYTES, -(-size // MOST_PIECES))

        def put() -> None:
            with local.open("rb") as file:
                # An iterator is asked by this thread: an interrupt ends the upload, and what was
                # sent is dropped. A path would be read to its end first.
                pieces = iter(lambda: file.read(piece), b"") if size > piece else file.read()
                obstore.put(self._store(), self.path, pieces, chunk_size=piece, max_concurrency=4)

        try:
            retried(str(self), "written", put)
        except FileNotFoundError as error:
            raise StoreError(
                f"{self} could not be written: {one_line(error)}. Check that the bucket or folder "
                "exists."
            ) from error

    def _store(self) -> Any:
        return object_store(self.scheme, self.host, self.query)


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
