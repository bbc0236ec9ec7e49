"""The lending desk of a tool library: a site for the `web` recorder, with sign-in and a clock.

In: requests of the browser, records and templates under `sites/lending/`. Out: pages. The site's clock
starts at 10:00 and moves on by a minute with every page shown, so that the end of a sign-in after
ten minutes depends on the agent's steps and not on the speed of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from tools.record.sites.server import Request, Response, data, redirect, static_file, templates

NAME = "lending"
SIGN_IN_MINUTES = 10
PAGE_SIZE = 5
LOANS_PER_MEMBER = 2
LONGEST_LOAN = 14
EXTENSION = timedelta(days=7)
SORTS = ("number", "name", "deposit")


class LendingDesk:
    """Tools, members and loans; every visitor signs in as a desk."""

    host = "lending.example.com"

    def __init__(self) -> None:
        records = data(NAME)
        self.today: date = records["today"]
        self.desks: dict[str, str] = records["desks"]
        self.tools: dict[str, dict[str, Any]] = {tool["number"]: tool for tool in records["tools"]}
        self.members: dict[str, str] = records["members"]
        self.loans: dict[str, dict[str, Any]] = {
            number: {**loan, "extended": False} for number, loan in records["loans"].items()
        }
        self.repair: set[str] = set(records["repair"])
        self.minutes = 0
        self.signed_in: dict[str, tuple[str, int]] = {}
        self.notices: dict[str, str] = {}
        self.pages = templates(NAME)

    def answer(self, request: Request) -> Response:
        """A file, the sign-in page, or what a signed-in desk asked for."""
        if file := static_file(NAME, request.path):
            return file
        if request.path == "/login":
            return self._login(request)
        if self._desk(request) is None:
            if request.visitor in self.signed_in:
                del self.signed_in[request.visitor]
                self._notify(request, "You were signed out after 10 minutes.")
            target = request.target if request.method == "GET" else "/tools"
            return redirect(f"/login?{urlencode({'next': target})}")
        head, *rest = request.path.strip("/").split("/")
        routes: dict[str, Callable[[Request, list[str]], Response | None]] = {
            "": lambda request, rest: redirect("/tools"),
            "logout": self._logout,
            "tools": self._tools,
            "loans": self._loans,
            "members": self._members,
            "reports": self._reports,
        }
        page = routes[head](request, rest) if head in routes else None
        text = f"There is nothing at {request.path}."
        return page or self._page(request, "problem", status=404, heading="Page not found", text=text)

    def _desk(self, request: Request) -> str | None:
        desk, since = self.signed_in.get(request.visitor, ("", -SIGN_IN_MINUTES))
        return desk if self.minutes - since < SIGN_IN_MINUTES else None

    def _page(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        clock = f"{10 + self.minutes // 60}:{self.minutes % 60:02d}"
        text = self.pages.get_template(f"{template}.html").render(
            desk=self._desk(request),
            clock=clock,
            notice=self.notices.pop(request.visitor, ""),
            members=self.members,
            status=self._status,
            **values,
        )
        self.minutes += 1
        return Response(text, status=status)

    def _notify(self, request: Request, text: str) -> None:
        """`text` stands once on the next page that the visitor sees."""
        self.notices[request.visitor] = text

    def _status(self, number: str) -> str:
        if number in self.repair:
            return "in repair"
        if number in self.loans:
            return f"out until {day(self.loans[number]['due'])}"
        return "in"

    def _login(self, request: Request) -> Response:
        desk, target = request.form.get("desk", ""), request.query.get("next", "/tools")
        if request.method == "GET":
            return self._page(request, "login", next=target, desk_name="", error="")
        target = request.form["next"]
        if self.desks.get(desk) != request.form.get("pin"):
            error = "Desk or PIN is wrong."
            return self._page(request, "login", next=target, desk_name=desk, error=error)
        self.signed_in[request.visitor] = desk, self.minutes
        return redirect(target)

    def _logout(self, request: Request, rest: list[str]) -> Response:
        del self.signed_in[request.visitor]
        self._notify(request, "You are signed out.")
        return redirect("/login")

    def _tools(self, request: Request, rest: list[str]) -> Response | None:
        if not rest:
            return self._list(request)
        number, *action = rest
        if number not in self.tools:
            return None
        changes = {"extend": self._extend, "return": self._return, "repaired": self._repaired}
        if action:
            if request.method != "POST" or action[0] not in changes:
                return None
            changes[action[0]](request, number)
            return redirect(f"/tools/{number}")
        tool, loan = self.tools[number], self.loans.get(number)
        return self._page(request, "tool", tool=tool, loan=loan, in_repair=number in self.repair)

    def _list(self, request: Request) -> Response:
        query = request.query
        sort = query.get("sort") if query.get("sort") in SORTS else "number"
        only_in = query.get("in") == "1"
        fitting = [
            tool
            for tool in self.tools.values()
            if query.get("q", "").lower() in tool["name"].lower()
            and query.get("category") in (None, "", tool["category"])
            and not (only_in and self._status(tool["number"]) != "in")
        ]
        fitting.sort(key=lambda tool: tool[sort])
        pages = max(1, -(-len(fitting) // PAGE_SIZE))
        page = min(max(int(query.get("page", "1")), 1), pages)
        first = (page - 1) * PAGE_SIZE
        return self._page(
            request,
            "tools",
            tools=fitting[first : first + PAGE_SIZE],
            first=first + 1,
            total=len(fitting),
            page=page,
            pages=pages,
            page_link=lambda number: f"/tools?{urlencode({**query, 'page': number})}",
            q=query.get("q", ""),
            category=query.get("category", ""),
            categories=sorted({tool["category"] for tool in self.tools.values()}),
            sort=sort,
            sorts=SORTS,
            only_in=only_in,
        )

    def _extend(self, request: Request, number: str) -> None:
        loan = self.loans[number]
        if loan["extended"]:
            self._notify(request, f"{number} was extended before; a loan can be extended once.")
            return
        loan.update(due=loan["due"] + EXTENSION, extended=True)
        self._notify(request, f"{number} is now due on {day(loan['due'])}.")

    def _return(self, request: Request, number: str) -> None:
        loan = self.loans.pop(number)
        needs_repair = request.form["condition"] == "repair"
        if needs_repair:
            self.repair.add(number)
        late = (self.today - loan["due"]).days
        fee = f" Late fee: {late} EUR." if late > 0 else ""
        goes = "goes to repair" if needs_repair else f"goes to shelf {self.tools[number]['shelf']}"
        self._notify(request, f"{number} is back and {goes}.{fee}")

    def _repaired(self, request: Request, number: str) -> None:
        self.repair.discard(number)
        self._notify(request, f"{number} goes to shelf {self.tools[number]['shelf']}.")

    def _loans(self, request: Request, rest: list[str]) -> Response | None:
        tool = self.tools.get(request.query.get("tool", ""))
        if rest != ["new"] or tool is None:
            return None
        form = {"member": "", "days": "7", "deposit": "", **request.form}
        errors = self._loan_errors(tool, form) if request.method == "POST" else []
        if request.method == "GET" or errors:
            return self._page(request, "loan", tool=tool, form=form, errors=errors)
        due = self.today + timedelta(days=int(form["days"]))
        self.loans[tool["number"]] = {"member": form["member"], "due": due, "extended": False}
        self._notify(request, f"{tool['number']} is lent to {form['member']} until {day(due)}.")
        return redirect(f"/tools/{tool['number']}")

    def _loan_errors(self, tool: dict[str, Any], form: dict[str, str]) -> list[str]:
        errors = []
        member, days = form["member"], form["days"]
        if self._status(tool["number"]) != "in":
            errors.append(f"{tool['number']} is not in.")
        if member not in self.members:
            errors.append(
                f"There is no member with the number {member}." if member else "Enter a member number."
            )
        elif sum(loan["member"] == member for loan in self.loans.values()) >= LOANS_PER_MEMBER:
            errors.append(f"{member} has {LOANS_PER_MEMBER} tools on loan already, which is the limit.")
        if not (days.isdecimal() and 1 <= int(days) <= LONGEST_LOAN):
            errors.append(f"Days must be a whole number from 1 to {LONGEST_LOAN}.")
        if not form["deposit"]:
            errors.append("Take the deposit and tick the box.")
        return errors

    def _members(self, request: Request, rest: list[str]) -> Response | None:
        if not rest:
            return self._page(request, "members")
        if rest[0] not in self.members:
            return None
        lent = [
            self.tools[number] for number, loan in sorted(self.loans.items()) if loan["member"] == rest[0]
        ]
        return self._page(request, "member", number=rest[0], lent=lent)

    def _reports(self, request: Request, rest: list[str]) -> Response | None:
        if not rest:
            return self._page(request, "reports")
        if rest == ["months"]:
            text = "The page could not be made. The fault has been noted."
            return self._page(request, "problem", status=500, heading="Something went wrong", text=text)
        late = [
            (self.tools[number], loan, day(loan["due"]), (self.today - loan["due"]).days)
            for number, loan in sorted(self.loans.items())
            if loan["due"] < self.today
        ]
        return self._page(request, "overdue", late=late) if rest == ["overdue"] else None


def day(value: date) -> str:
    """A date as the site writes it: `6 March 2025`."""
    return f"{value.day} {value:%B %Y}"
