"""The web application of the review desk: its addresses, and errors as pages."""

from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nearsim_db.cli.review import decisions, pages
from nearsim_db.cli.review.call import Call
from nearsim_db.cli.review.site import Site
from nearsim_db.errors import ConflictError, InputError, NearsimError, NotFoundError, UnreachableError

Page = Callable[[Site, Call], Response]
_LARGEST_FORM = 100_000
_READ_ONLY = "this user may read the desk only; an administrator grants more: nearsim db grant USER writer"
_TITLES: dict[type[NearsimError], tuple[str, int]] = {
    NotFoundError: ("Not found", 404),
    ConflictError: ("Somebody was faster", 409),
    InputError: ("Not understood", 400),
    UnreachableError: ("The database cannot be reached", 503),
    NearsimError: ("That did not work", 500),
}
_PAGES: dict[str, Page] = {
    "/": pages.overview,
    "/queue/{queue}": pages.next_pair,
    "/documents/{queue}": pages.next_document,
    "/pair/{left:int}/{right:int}": pages.pair,
    "/cluster/{cluster:int}": pages.cluster,
    "/disagreements": pages.disagreements,
    "/counts": pages.counts,
    "/state": pages.state,
}
_DECISIONS: dict[str, Page] = {
    "/decide": decisions.decide,
    "/take-out": decisions.take_out,
    "/keep": decisions.keep,
    "/undo": decisions.undo,
}


def application(site: Site) -> Starlette:
    """Return the web application of a desk."""

    def not_found(request: Request, error: Exception) -> Response:
        return _message(site, "Not found", 404, NotFoundError("there is no such page"))

    return Starlette(
        routes=[
            *(Route(path, _answer(site, page)) for path, page in _PAGES.items()),
            *(Route(path, _answer(site, page), methods=["POST"]) for path, page in _DECISIONS.items()),
        ],
        exception_handlers={404: not_found},
    )


def _answer(site: Site, page: Page) -> "Callable[[Request], Any]":
    """Run a page in a thread; an error of nearsim becomes a page that says it."""

    async def answer(request: Request) -> Response:
        body = await request.body() if request.method == "POST" else b""
        return await run_in_threadpool(_run, site, page, Call.of(request, body))

    return answer


def _run(site: Site, page: Page, call: Call) -> Response:
    try:
        if len(call.body) > _LARGEST_FORM:
            raise InputError("the form is too large")
        if call.is_form and not site.may_review:
            return _message(site, "Read only", 403, NearsimError(_READ_ONLY))
        return page(site, call)
    except NearsimError as error:
        kinds = (kind for kind in _TITLES if isinstance(error, kind))
        return _message(site, *_TITLES[next(kinds)], error)


def _message(site: Site, title: str, status: int, error: NearsimError) -> Response:
    return site.render("message.html", status, title=title, error=str(error))
