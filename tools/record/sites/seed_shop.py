"""The seed shop: a site for the `web` recorder, with a basket, a voucher and a checkout.

In: requests of the browser, catalogue and templates under `sites/seeds/`. Out: pages. A notice covers
the pages of tomatoes and beans until the visitor closes it (a cookie remembers that). Each visitor has a basket;
order numbers run from 5001.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tools.record.sites.server import Request, Response, data, redirect, static_file, templates

NAME = "seeds"
MONTHS = ("March", "April", "May", "August")
KINDS = ("Flowers", "Herbs", "Vegetables")
VOUCHER = "SPRING10"
VOUCHER_FROM = 1000
PARCEL = 390
FREE_FROM = 2500
EMPTY_FORM = {"name": "", "street": "", "postcode": "", "town": "", "delivery": "parcel", "terms": ""}


@dataclass
class Visit:
    """What the shop remembers of a visitor; `packets` by slug, in the order of adding."""

    packets: dict[str, int] = field(default_factory=dict)
    voucher: str = ""
    form: dict[str, str] = field(default_factory=lambda: dict(EMPTY_FORM))
    reviewed: bool = False
    notice: str = ""


class SeedShop:
    """Catalogue, baskets and orders."""

    host = "seeds.example.com"

    def __init__(self) -> None:
        self.seeds: dict[str, dict[str, Any]] = {seed["slug"]: seed for seed in data(NAME)["seeds"]}
        self.visits: dict[str, Visit] = {}
        self.orders = 0
        self.pages = templates(NAME)

    def answer(self, request: Request) -> Response:
        """A file or a page."""
        if file := static_file(NAME, request.path):
            return file
        visit = self.visits.setdefault(request.visitor, Visit())
        head, *rest = request.path.strip("/").split("/")
        routes: dict[str, Callable[[Request, Visit, list[str]], Response | None]] = {
            "": lambda request, visit, rest: self._page(visit, "home"),
            "seeds": self._seeds,
            "basket": self._basket,
            "voucher": self._voucher,
            "checkout": self._checkout,
            "orders": self._orders,
        }
        page = routes[head](request, visit, rest) if head in routes else None
        text = "This page does not exist. The seeds are all listed under All seeds."
        return page or self._page(visit, "message", 404, heading="Not found", text=text)

    def _page(self, visit: Visit, template: str, status: int = 200, **values: Any) -> Response:
        notice, visit.notice = visit.notice, ""
        text = self.pages.get_template(f"{template}.html").render(
            count=sum(visit.packets.values()),
            notice=notice,
            money=money,
            kinds=KINDS,
            voucher=visit.voucher,
            lines=[(self.seeds[slug], packets) for slug, packets in visit.packets.items()],
            sums=self._sums(visit),
            **values,
        )
        return Response(text, status=status)

    def _sums(self, visit: Visit) -> dict[str, int]:
        goods = sum(self.seeds[slug]["price"] * packets for slug, packets in visit.packets.items())
        discount = (goods + 5) // 10 if visit.voucher and goods >= VOUCHER_FROM else 0
        free = goods >= FREE_FROM or visit.form["delivery"] == "collect"
        delivery = 0 if free else PARCEL
        return {
            "goods": goods,
            "discount": discount,
            "delivery": delivery,
            "total": goods - discount + delivery,
        }

    def _seeds(self, request: Request, visit: Visit, rest: list[str]) -> Response | None:
        if not rest:
            return self._list(request, visit)
        seed = self.seeds.get(rest[0])
        if seed is None:
            return None
        overlay = "notice=read" not in request.cookies and seed["slug"].endswith(("tomato", "bean"))
        if request.method == "GET":
            return self._page(visit, "seed", seed=seed, error="", overlay=overlay)
        packets = visit.packets.get(seed["slug"], 0) + int(request.form["packets"])
        if packets > seed["left"]:
            error = f"Only {seed['left']} packets of {seed['name']} are left."
            return self._page(visit, "seed", seed=seed, error=error, overlay=overlay)
        visit.packets[seed["slug"]] = packets
        visit.notice = f"{seed['name']} is in your basket ({packets})."
        return redirect(request.path)

    def _list(self, request: Request, visit: Visit) -> Response:
        kind, sow, sort = (request.query.get(key, "") for key in ("kind", "sow", "sort"))
        sort = sort or "name"
        fitting = [
            seed for seed in self.seeds.values() if kind in ("", seed["kind"]) and sow in ("", seed["sow"])
        ]
        fitting.sort(key=lambda seed: seed[sort])
        return self._page(visit, "list", seeds=fitting, kind=kind, sow=sow, sort=sort, months=MONTHS)

    def _basket(self, request: Request, visit: Visit, rest: list[str]) -> Response:
        if request.method == "GET":
            return self._page(visit, "basket", error="")
        wanted = {slug: int(packets) for slug, packets in request.form.items() if slug in self.seeds}
        removed = request.form.get("remove")
        if removed:
            wanted = {**visit.packets, removed: 0}
        for slug, packets in wanted.items():
            if packets > self.seeds[slug]["left"]:
                error = f"Only {self.seeds[slug]['left']} packets of {self.seeds[slug]['name']} are left."
                return self._page(visit, "basket", error=error)
        visit.packets = {slug: packets for slug, packets in wanted.items() if packets}
        visit.notice = f"{self.seeds[removed]['name']} was removed." if removed else "The basket was updated."
        return redirect("/basket")

    def _voucher(self, request: Request, visit: Visit, rest: list[str]) -> Response:
        code = request.form["code"].strip().upper()
        goods = self._sums(visit)["goods"]
        if code != VOUCHER:
            return self._page(visit, "basket", error=f"There is no voucher {code}.")
        if goods < VOUCHER_FROM:
            error = f"{VOUCHER} needs goods of {money(VOUCHER_FROM)} EUR; these are {money(goods)} EUR."
            return self._page(visit, "basket", error=error)
        visit.voucher = VOUCHER
        visit.notice = f"Voucher {VOUCHER} is used."
        return redirect("/basket")

    def _checkout(self, request: Request, visit: Visit, rest: list[str]) -> Response | None:
        if not visit.packets:
            return redirect("/basket")
        if rest == ["review"]:
            return self._page(visit, "review", form=visit.form) if visit.reviewed else redirect("/checkout")
        if rest:
            return None
        if request.method == "GET":
            return self._page(visit, "checkout", form=visit.form, error="")
        visit.form = {**EMPTY_FORM, **request.form}
        if visit.form["delivery"] == "parcel" and not visit.form["postcode"].startswith("2"):
            error = f"No parcels go to {visit.form['postcode']}. Choose to collect, or another address."
            return self._page(visit, "checkout", form=visit.form, error=error)
        visit.reviewed = True
        return redirect("/checkout/review")

    def _orders(self, request: Request, visit: Visit, rest: list[str]) -> Response | None:
        if request.method == "POST" and visit.reviewed and visit.packets:
            self.orders += 1
            query = urlencode({"paid": money(self._sums(visit)["total"])})
            for slug, packets in visit.packets.items():
                self.seeds[slug]["left"] -= packets
            visit.packets, visit.voucher, visit.reviewed = {}, "", False
            return redirect(f"/orders/{5000 + self.orders}?{query}")
        if not rest or not rest[0].isdecimal() or not 5000 < int(rest[0]) <= 5000 + self.orders:
            return None
        text = f"Order {rest[0]} has come in. Please pay {request.query.get('paid', '0.00')} EUR on delivery."
        return self._page(visit, "message", heading="Thank you", text=text)


def money(cents: int) -> str:
    """Cents as euros: `3.90`."""
    return f"{cents // 100}.{cents % 100:02d}"
