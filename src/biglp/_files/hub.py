"""Files of the Hugging Face Hub: ``hf://datasets/user/name/rows.parquet``."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from biglp._core.errors import MissingExtraError, ParameterError, StoreError
from biglp._files.uri import one_line

HUB = "hf://"
KINDS = {"datasets": "dataset", "spaces": "space"}


def fetched(uri: str) -> Path:
    """Download a file, a folder or what fits a pattern, to the cache of ``huggingface_hub``.

    What is there already is not downloaded again. The path is that of the local copy.
    """
    first, _, rest = uri.removeprefix(HUB).strip("/").partition("/")
    kind = KINDS.get(first)
    user, name, path = [*(rest if kind else f"{first}/{rest}").split("/", 2), "", ""][:3]
    if not user or not name:
        raise ParameterError(
            f"{uri} names no repository; write hf://datasets/USER/NAME, and a file or folder "
            "behind it."
        )
    name, _, revision = name.partition("@")
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtraError(
            f"{uri} is on the Hugging Face Hub, which is read with huggingface_hub; install it "
            "with: pip install huggingface_hub"
        ) from error
    try:
        folder = snapshot_download(
            f"{user}/{name}",
            repo_type=kind,
            revision=unquote(revision) or None,
            allow_patterns=[path, f"{path}/*"] if path else None,
        )
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{uri} could not be downloaded: {one_line(error)}. Check the name; for a private one "
            "sign in with: hf auth login"
        ) from error
    return Path(folder, path)
