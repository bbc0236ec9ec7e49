"""The evening school's site for the `web` recorder: one page whose script does everything.

In: requests of the browser and the files under `sites/courses/`. Out: those files. All state is in the
browser's local storage, so that a fresh profile starts without bookings.
"""

from __future__ import annotations

from tools.record.sites.server import Request, Response, static_file

NAME = "courses"


class EveningSchool:
    """Static files."""

    host = "courses.example.com"

    def answer(self, request: Request) -> Response:
        """The page, its script, its style, or a bare 404."""
        path = "/index.html" if request.path == "/" else request.path
        found = static_file(NAME, path)
        return found or Response("<title>404</title><h1>404 Not Found</h1>", status=404)
