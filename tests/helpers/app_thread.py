"""Runs an `aiohttp.web` application on 127.0.0.1 in a thread of its own, with its own event loop.

In: an application and a port (0: any free one). Out: `start()` returns the bound port once the
socket listens, `stop()` cancels what is still in flight and joins the thread; both are bounded.
The backlog is long enough for some hundred clients that connect at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading

from aiohttp import web

HOST = "127.0.0.1"
START_STOP_LIMIT_S = 20.0


class AppThread:
    """One application, one thread, one loop; can be started once."""

    def __init__(self, app: web.Application, port: int = 0) -> None:
        self._app = app
        self._port = port
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="loopback-server", daemon=True)

    def start(self) -> int:
        """Returns the bound port; `OSError` when it is taken."""
        self._thread.start()
        if not self._ready.wait(START_STOP_LIMIT_S):
            raise TimeoutError("the loopback server did not start")
        if self._failure is not None:
            raise self._failure
        return self._port

    def stop(self) -> None:
        """Ends the server; a second call does nothing."""
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop may close by itself in between
                self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(START_STOP_LIMIT_S)
        if self._thread.is_alive():
            raise TimeoutError("the loopback server did not stop")

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:  # the port is taken; handed to the thread that waits in start()
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=0.05)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, self._port, backlog=1024).start()
            self._port = int(runner.addresses[0][1])
            self._ready.set()
            await self._stopping.wait()
        finally:
            await runner.cleanup()
