"""From errors to one clear message and an exit code that means something."""

from __future__ import annotations

import functools
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer

from biglp._core import errors
from biglp._core.parameters import flags_of

Command = TypeVar("Command", bound=Callable[..., Any])

UNEXPECTED, USAGE, INPUT, ROOM, STORED, EXTRA, WORKERS, DOWNLOAD = 1, 2, 3, 4, 5, 6, 7, 8
INTERRUPTED, TERMINATED = 130, 143
EXIT_CODES = (
    "[bold]Exit codes[/bold]: 0 done · 1 unexpected · 2 wrong usage · 3 unusable rows or labels · "
    "4 memory or disk too small · 5 run cannot be resumed or model file unusable · "
    "6 optional part not installed · 7 workers lost or out of reach · "
    "8 download or object store failed · 130 interrupted"
)


CODES: dict[int, tuple[type[BaseException], ...]] = {
    USAGE: (errors.ParameterError,),
    INPUT: (errors.InputError,),
    STORED: (errors.CheckpointError, errors.ModelFileError),
    EXTRA: (errors.MissingExtraError,),
    WORKERS: (errors.EngineError,),
    DOWNLOAD: (errors.DownloadError, errors.StoreError),
    ROOM: (MemoryError, errors.OutputError),
}
"""The first that fits is that of an error."""


def explained(command: Command) -> Command:
    """Let a command end with one message and an exit code instead of a traceback.

    A command may have ``debug`` among its arguments: then the traceback is shown as well.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        signals: list[int] = []
        try:
            with _requests_to_end(signals):
                return command(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            if signals or isinstance(error, KeyboardInterrupt):
                terminated = signal.SIGTERM in signals
                _print_once("terminated." if terminated else "interrupted.")
                from biglp._engines import end_by_signal

                # Processes that are waiting for this one to start end as well.
                end_by_signal(signal.SIGTERM if terminated else signal.SIGINT)
                raise typer.Exit(TERMINATED if terminated else INTERRUPTED) from None
            if isinstance(error, (typer.Exit, BrokenPipeError)) or hasattr(error, "exit_code"):
                raise  # typer's own, or a reader such as head has closed the pipe
            if kwargs.get("debug"):
                traceback.print_exc()
            message = message_of(error)
            if message.startswith("unexpected") and not kwargs.get("debug"):
                message += " Please report it, with what --debug shows."
            _print_once(message)
            raise typer.Exit(code_of(error)) from None

    return run  # type: ignore[return-value]


def code_of(error: BaseException) -> int:
    """Exit code of an error."""
    for code, kinds in CODES.items():
        if isinstance(error, kinds):
            return code
    if isinstance(error, OSError):
        return ROOM if error.errno in errors.DISK_FULL else INPUT
    return UNEXPECTED


def message_of(error: BaseException) -> str:
    """One message, in the words of the command line."""
    text = str(error)
    if isinstance(error, errors.BigLPError):
        # Messages begin with a parameter by its name in Python.
        text = re.sub(r"^([a-z_]+)=(?=\S)", lambda match: f"{flags_of(match[1])[0]} ", text)
        return "\n".join([text, *getattr(error, "__notes__", ())])
    if isinstance(error, MemoryError):
        return "there is not enough memory. Give a smaller --memory, or use fewer landmarks (-k)."
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror or text}."
    return f"unexpected {type(error).__name__}: {text.rstrip('.')}."


def _print_once(message: str) -> None:
    """Print it once, also where several processes fail in the same way."""

    def say() -> None:
        from biglp.cli.console import errors_console, escape  # rich takes a while to load

        errors_console().print(f"[bold red]biglp:[/bold red] {escape(message)}", soft_wrap=True)

    if "biglp._engines" in sys.modules:
        from biglp._engines import end_together

        end_together(say)
    else:  # there can be no other process
        say()


@contextmanager
def _requests_to_end(signals: list[int]) -> Iterator[None]:
    """Treat a request to end like Ctrl-C while a command runs, and keep account of both.

    The interruption itself may be lost: compiled code that was about to look something up puts an
    error of its own in its place, and a ZIP file cannot be closed while it is written to. Whatever
    error comes after a signal is taken for its consequence.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: Any) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if previous[signal.SIGINT] is not signal.default_int_handler:
        del previous[signal.SIGINT]  # ignored, as behind nohup, or somebody else's
    for number in previous:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler or signal.SIG_DFL)
