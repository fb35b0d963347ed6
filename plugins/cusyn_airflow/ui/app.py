"""Budget pools, charges, releases and one charge's journal, as pages. Nothing here writes.

Airflow serves plugin applications to anybody unless they ask for a user: this one does, for every
page, and shows no interactive API documentation.
"""

from __future__ import annotations

import datetime as dt
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from pathlib import Path
from urllib.parse import quote

import jinja2
from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from cusyn_airflow.hooks.ledger import PrivacyLedgerHook
from cusyn_airflow.links import PAGES
from include.accounting import format_amount
from include.budget.errors import LedgerError, UnknownName
from include.budget.models import Charge
from include.budget.reader import LedgerReader, Pool
from include.errors import CuSynError
from include.settings import load_settings
from include.stages.ledger import last_verification
from include.stages.words import withdrawn_words

PAGE_ROWS = 100

app = FastAPI(dependencies=[Depends(get_user)], docs_url=None, redoc_url=None, openapi_url=None)
# Names in a ledger are anybody's text: the default would escape files that end in .html only.
templates = Jinja2Templates(
    env=jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
)


def short(amount: str, *, up: bool = False) -> str:
    """Shorten an exact amount for reading, against the reader's favour."""
    step = Decimal("0.001")
    rounded = Decimal(amount).quantize(step, ROUND_UP if up else ROUND_DOWN)
    return format(rounded.normalize(), "f")


def when(time: str) -> str:
    """Shorten an ISO 8601 time in UTC to its seconds."""
    return time[:19].replace("T", " ") + " UTC"


def share(part: int, pool: Pool) -> str:
    """Return a part of a pool's cap as the width of a bar."""
    return f"{100 * part / pool.cap_pico:.3f}%"


def run_link(charge: Charge) -> str:
    """Return the address of the run that asked for a charge."""
    return f"/dags/{quote(charge.dag_id)}/runs/{quote(charge.run_id)}"


def log_link(charge: Charge) -> str:
    """Return the address of the log of the task that asked for a charge."""
    return f"{run_link(charge)}/tasks/{quote(charge.task_id)}"


templates.env.globals.update(
    base=PAGES,
    short=short,
    when=when,
    share=share,
    run_link=run_link,
    log_link=log_link,
    amount=format_amount,
)


def _reader() -> LedgerReader:
    return PrivacyLedgerHook().get_reader()


@app.get("/", response_class=HTMLResponse)
def overview(request: Request, page: int = Query(1, ge=1, le=10_000)) -> HTMLResponse:
    """Show the pools, the charges, the releases and the state of the ledger."""
    reader = _reader()
    found = reader.charges(limit=PAGE_ROWS + 1, offset=(page - 1) * PAGE_ROWS)
    return templates.TemplateResponse(
        request,
        "overview.html.j2",
        {
            "pools": [pool for pool in reader.pools() if pool.status != "retired"],
            "charges": found[:PAGE_ROWS],
            "releases": reader.releases(limit=PAGE_ROWS) if page == 1 else [],
            "page": page,
            "more": len(found) > PAGE_ROWS,
            "verified": last_verification(load_settings()),
            "forecast": _forecast(reader) if page == 1 else [],
        },
    )


@app.get("/charges/{charge_id}", response_class=HTMLResponse)
def one_charge(request: Request, charge_id: str) -> HTMLResponse:
    """Show one charge: who asked for what, what it cost, and its journal in words."""
    reader = _reader()
    charge = reader.charge(charge_id)
    return templates.TemplateResponse(
        request,
        "charge.html.j2",
        {
            "charge": charge,
            "entries": reader.entries(charge_id),
            "predictions": (charge.plan or {}).get("predictions", []),
            "withdrawn": withdrawn_words(charge, reader),
        },
    )


@app.exception_handler(CuSynError)
def plain_fault(request: Request, fault: CuSynError) -> HTMLResponse:
    """Show a fault as its one sentence."""
    unknown = isinstance(fault, UnknownName)
    code = 404 if unknown else 503 if isinstance(fault, LedgerError) else 500
    context = {"sentence": str(fault)}
    return templates.TemplateResponse(request, "fault.html.j2", context, status_code=code)


def _forecast(reader: LedgerReader) -> list[str]:
    """Return each schedule's outlook in words."""
    from include.stages.forecast import forecast_files

    today = dt.datetime.now(dt.UTC).date()
    return [outlook.words for outlook in forecast_files(load_settings(), reader, today)]
