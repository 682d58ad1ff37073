"""Running the server: an address, a token, and an end that leaves nothing behind."""

from __future__ import annotations

import socket
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from biglp._core.errors import BigLPWarning, MissingExtraError, ParameterError
from biglp._pages.label.session import Session, Wanted

NAMES = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine for itself."""
SWITCH_SECONDS = 0.001
"""How long Python lets a fit go on while a request waits."""


@dataclass(frozen=True)
class Address:
    """Where the server listens.

    Attributes
    ----------
    host : str
    port : int
        0 is any that is free.
    i_know : bool
        Whether other machines may reach it.
    """

    host: str = "127.0.0.1"
    port: int = 0
    i_know: bool = False

    def check(self) -> None:
        """Refuse an address that other machines reach, unless that is meant."""
        if self.i_know or self.is_loopback:
            return
        raise ParameterError(
            f"host={self.host!r} can be reached from other machines, and what the page shows "
            "crosses the network unencrypted. Use 127.0.0.1 with a tunnel (ssh -L) or a reverse "
            "proxy, as docs/label.md shows, or add --i-know."
        )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    def listen(self) -> socket.socket:
        """Open the port."""
        host = self.host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.socket(family, socket.SOCK_STREAM)
        # On Windows SO_REUSEADDR would let any other program take the port over.
        alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        found.setsockopt(socket.SOL_SOCKET, alone, 1)
        try:
            found.bind((host, self.port))
        except OSError as error:
            found.close()
            raise ParameterError(
                f"port={self.port} of {self.host} cannot be used: {error.strerror}. Give another "
                "--port, or none for any that is free."
            ) from error
        found.listen(128)
        return found


def serve(
    wanted: Wanted, address: Address, began: Callable[[str], None], allowed: tuple[str, ...] = ()
) -> int:
    """Serve the page until the process is asked to end; return how many labels there are then.

    Parameters
    ----------
    wanted : Wanted
    address : Address
    began : callable
        Told the URL when the page can be opened.
    allowed : tuple of str
        Further hosts that the page may be asked under, for a reverse proxy.
    """
    uvicorn = _uvicorn()
    address.check()
    with address.listen() as listening:
        session = Session(wanted)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BigLPWarning)  # the page says what there is to say
                _run(uvicorn, session, listening, began, (address.host, *allowed))
        except KeyboardInterrupt:  # how a server is ended: every answer is on disk
            pass
        finally:
            session.close()
    return len(session.answers.own)


def _run(
    uvicorn: Any,
    session: Session,
    listening: socket.socket,
    began: Callable[[str], None],
    names: tuple[str, ...],
) -> None:
    # Both need starlette.
    from biglp._pages.label.app import Page
    from biglp._pages.label.guard import Guard, kept_token

    port = listening.getsockname()[1]
    token = kept_token(session.wanted.path)
    page = Page(session)
    hosts = [f"{name}:{port}" for name in (*NAMES, names[0])] + list(names[1:])
    guard = Guard(page.app(), token, tuple(hosts))

    class Server(uvicorn.Server):
        """Ends streams of events before it waits for requests to end."""

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            session.start()
            shown = "127.0.0.1" if names[0] in ("0.0.0.0", "::") else names[0]
            began(f"http://{shown}:{port}/?token={token}")

        async def shutdown(self, sockets: Any = None) -> None:
            page.closing.set()
            session.changed()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        guard,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=3,
    )
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        Server(config).run(sockets=[listening])
    finally:
        sys.setswitchinterval(interval)


def _uvicorn() -> Any:
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(
            "biglp label needs Starlette and uvicorn, which are not installed; install them with: "
            'pip install "biglp[label]"'
        ) from error
    return uvicorn
