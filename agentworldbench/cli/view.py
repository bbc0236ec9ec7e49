"""`awb view`: runs in the browser, also while they are under way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworldbench.cli.arguments import AllowCode, MovedData
from agentworldbench.cli.output import put, say

if TYPE_CHECKING:
    from agentworldbench.report.serve import Site


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("view", short_help="Runs in the browser, also while they are under way.")(view)


def view(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Run directories, or a folder of them; default: runs.", metavar="RUN", show_default=False),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", min=0, max=65535, help="Port; default: 7870, or the next free one.", show_default=False),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Where to listen; others than this machine's own addresses let others read.")] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    data: MovedData = None,
    allow_code: AllowCode = False,
) -> None:  # fmt: skip
    """Serve the pages of `awb report` to a browser on this machine, made when they are asked for, with live counts.

    Works for runs that are finished, under way or stopped, and changes nothing in them. Ctrl-C ends it.
    """
    import threading
    import webbrowser

    from agentworldbench.report.serve import PORT, is_loopback, open_server

    server = open_server(_site(runs or [Path("runs")], data, allow_code), host, port)
    if port is None and server.port != PORT:
        say(f"Port {PORT} is in use; this is {server.port}.")
    if not is_loopback(host):
        say(
            f"Warning: everybody who reaches port {server.port} of this machine can read these runs and their data."
        )
    put(server.address)
    say("Ctrl-C ends this; the runs go on.")
    if open_browser:
        # A browser in the terminal comes back only when it is left, and needs answers before.
        threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
    with server:
        server.serve_forever(poll_interval=0.2)


def _site(runs: list[Path], data: str | None, allow_code: bool) -> Site:
    """The pages of one run, or a list of several. Raises ConfigError where there is none."""
    from agentworldbench.errors import ConfigError
    from agentworldbench.report.folder_site import FolderSite
    from agentworldbench.report.live import LiveRun
    from agentworldbench.report.live_site import RunSite
    from agentworldbench.run_list import links_out, run_paths
    from agentworldbench.store import no_run

    if len(runs) == 1 and not (runs[0] / "run.json").is_file():
        folder = runs[0]
        if not folder.is_dir():
            raise ConfigError(
                f"{folder}: no such folder; give a run directory, or the folder that holds some"
            )
        return FolderSite(lambda: run_paths(folder), folder, data, allow_code, lambda: links_out(folder))
    for one in runs:
        if not (one / "run.json").is_file():
            raise no_run(one)
    if len({one.resolve() for one in runs}) < len(runs):
        raise ConfigError("a run is named twice")
    if len(runs) > 1:
        return FolderSite(lambda: runs, Path(), data, allow_code)
    return RunSite(LiveRun(runs[0], data, allow_code))
