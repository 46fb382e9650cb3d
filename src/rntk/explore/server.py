"""Who may reach the page: programs on this machine, through 127.0.0.1, and only by that name.

The socket is bound to the loopback address, so no other machine can connect. A page elsewhere on the web could still
point a name of its own at 127.0.0.1 and have the browser connect for it: requests are answered only if their Host
header, and their Origin if there is one, name this machine and port.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.ioloop import IOLoop
from tornado.web import ErrorHandler

from .data import Subject
from .page import Page, Run

LOOPBACK = "127.0.0.1"


class LocalOnly(BokehTornado):  # type: ignore[misc]
    """Bokeh's application, for requests that name this machine."""

    def __init__(self, application: Application, names: frozenset[str]) -> None:
        self._names = names
        super().__init__(application, extra_websocket_origins=sorted(names))

    def find_handler(self, request: HTTPServerRequest, **options: Any) -> Any:
        """The handler of a request; for foreign ones, the one that answers 403."""
        origin = request.headers.get("Origin")
        hosts = [request.host] + ([] if origin is None else [urlsplit(origin).netloc])
        if all(host.lower() in self._names for host in hosts):
            return super().find_handler(request, **options)
        return self.get_handler_delegate(request, ErrorHandler, {"status_code": 403})


def names_of(port: int) -> frozenset[str]:
    """How a browser on this machine may call a server on `port`; it leaves out the port that is HTTP's own."""
    names = (LOOPBACK, "localhost")
    return frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == 80 else frozenset())


class PageServer:
    """A server of pages on a subject: its port is taken as soon as it is made, and answers in `run`.

    Parameters
    ----------
    subject : Subject
        What is looked at.
    port : int
        0 takes any free one.

    Raises
    ------
    OSError
        The port is taken, or not ours to take.
    """

    def __init__(self, subject: Subject, port: int = 0) -> None:
        self.subject = subject
        self.socket = socket.create_server((LOOPBACK, port), backlog=128)
        self.socket.setblocking(False)
        self.port = int(self.socket.getsockname()[1])
        # One computation at a time, for all tabs: each takes all cores.
        self._worker = ThreadPoolExecutor(1, "rntk-explore")
        self._stop: Callable[[], object] | None = None
        self._ended = False

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.port}/"

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Answer until `stop` or Ctrl-C; `started` is called when it does."""
        # A tab that closes while a picture is on its way is no news.
        logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)
        with suppress(KeyboardInterrupt):
            asyncio.run(self._answer(started))
        # What is being computed ends first: it needs threads, and there are none once the interpreter goes down.
        self._worker.shutdown(wait=True)

    def stop(self) -> None:
        """End `run`, from any thread."""
        assert self._stop is not None, "stop comes after started"
        self._stop()

    async def _answer(self, started: Callable[[], None]) -> None:
        ended = asyncio.Event()
        self._stop = partial(asyncio.get_running_loop().call_soon_threadsafe, ended.set)
        tornado = LocalOnly(Application(FunctionHandler(self._open_tab)), names_of(self.port))
        http = HTTPServer(tornado)
        http.add_socket(self.socket)
        server = BaseServer(IOLoop.current(), tornado, http)
        server.start()
        started()
        try:
            await ended.wait()  # Ctrl-C cancels it
        finally:
            self._ended = True
            self._worker.shutdown(wait=False, cancel_futures=True)
            server.stop(wait=False)
            await http.close_all_connections()

    def _open_tab(self, document: Document) -> None:
        Page(self.subject, self._in_background(document)).attach(document)

    def _in_background(self, document: Document) -> Run:
        """Computations in the worker; what they give comes back to the document's own thread."""
        closed: list[bool] = []
        document.on_session_destroyed(lambda context: closed.append(True))

        def nobody_waits() -> bool:
            return self._ended or bool(closed)

        def work(job: Callable[[], Any], then: Callable[[Any], None]) -> None:
            if nobody_waits():
                return
            outcome = job()
            if not nobody_waits():
                document.add_next_tick_callback(partial(then, outcome))

        def run(job: Callable[[], Any], then: Callable[[Any], None]) -> None:
            if not nobody_waits():
                self._worker.submit(work, job, then)

        return run
