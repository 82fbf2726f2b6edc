"""`trainyard reprovision`: differences from the inventory with their ages, and their repair."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from ..core.errors import TrainyardError
from ..core.waiter import CLOCK
from ..drift import repair_plan
from ..drift.markdown import markdown
from ..drift.masking import Masker
from ..drift.playbook_runner import ROOT
from ..drift.report import EXIT_BUSY, EXIT_UNKNOWN, of_checkout
from ..drift.report_run import credentials
from ..drift.report_store import BusyError, Store
from ..drift.settings import Site, site_of
from ..schedule import notify
from ..schedule.session import MODES, perform
from ..schedule.status import Status, status_of
from ..site_lock.holder import Busy, here
from . import terminal
from .reports import listed, shown, status_lines


@click.group("reprovision")
def command() -> None:
    """Find drift, report it, and repair it within limits."""


@command.command("run")
@click.option(
    "--mode", type=click.Choice(list(MODES)), default="report", show_default=True, help="Only report, or also repair."
)
@click.option("--hosts", default="", help="Limit the run to these hosts, separated by commas.", metavar="HOST")
@click.pass_obj
def run(inventory: tuple[str, ...], mode: str, hosts: str) -> None:
    """Run once, like the timer.

    Exits with 0 clean, 1 drift is left, 2 unknown, 3 held back, 4 another run is running, 5 a repair failed.
    """
    sys.exit(_run(inventory, mode, [each.strip() for each in hosts.split(",") if each.strip()]))


def _run(inventory: tuple[str, ...], mode: str, hosts: list[str]) -> int:
    masker = Masker(credentials(os.environ))
    try:
        site = site_of(inventory)
        masker = Masker({*site.secrets, *credentials(os.environ)})
        store = Store(site.settings.state_dir)
        session = perform(site, store, mode, of_checkout(ROOT), hosts=hosts)
        shown(session.report, terminal.Terminal())
        terminal.echo(store.runs / session.name / "report.md")
        return int(session.report["exit_status"])
    except (Busy, BusyError) as error:
        terminal.echo(f"Error: {masker.text(str(error))}", err=True)
        notify.refused(site, store)
        return EXIT_BUSY
    except TrainyardError as error:
        terminal.echo(f"Error: {masker.text(str(error))}", err=True)
    except Exception as error:  # Python would exit with 1, which means that the site has drifted
        terminal.echo(f"Error: {type(error).__name__}: {masker.text(str(error))}", err=True)
    # The caller must see that the state of the site is unknown.
    return EXIT_UNKNOWN


@command.command("approve")
@click.argument("report")
@click.pass_obj
def approve(inventory: tuple[str, ...], report: str) -> None:
    """Allow one converge to exceed the limits, for exactly the drift and the revision of REPORT."""
    site, store = _opened(inventory)
    now = CLOCK.time()
    given = repair_plan.approve(_report(store, report), now, here("approve", report, now).user)
    repair_plan.save(store.folder, given)
    terminal.echo(
        f"For {site.settings.approval_hours:.0f} h one converge with the revision {given.commit[:7]} may repair "
        f"the {len(given.keys)} items of {given.report}, and nothing else."
    )


@command.command("status")
@click.option("--json", "as_json", is_flag=True, help="One object instead of text.")
@click.pass_obj
def status(inventory: tuple[str, ...], as_json: bool) -> None:
    """Show the last, current and next run, drift with its age, limits and revision.

    Exits with 0 if the last run was clean, 1 if it was not, and 2 if its result is unknown.
    """
    site, store = _opened(inventory)
    found: Status = status_of(site, store, CLOCK.time())
    if as_json:
        terminal.show_json({"schema": SCHEMA, **found.as_json()})
    else:
        terminal.echo("\n".join(status_lines(found)))
    sys.exit(found.exit_status)


@command.command("show")
@click.argument("report", default="")
@click.option("--json", "as_json", is_flag=True, help="The JSON document itself.")
@click.option("--markdown", "as_markdown", is_flag=True, help="For a ticket or a CI's summary.")
@click.option("--list", "as_list", is_flag=True, help="All saved runs, the newest first.")
@click.pass_obj
def show(inventory: tuple[str, ...], report: str, as_json: bool, as_markdown: bool, as_list: bool) -> None:
    """Show a REPORT by its name, or the last one."""
    if as_json and as_markdown:
        raise click.UsageError("Give one of --json and --markdown.")
    _, store = _opened(inventory)
    if as_list:
        reports = store.reports()
        if as_json:
            heads = [{name: each[name] for name in HEAD} for each in reports]
            terminal.show_json({"schema": SCHEMA, "reports": heads})
        else:
            listed(reports, terminal.Terminal())
        return
    found = _report(store, report)
    if as_json:
        terminal.show_json(found)
    elif as_markdown:
        terminal.echo(markdown(found), newline=False)
    else:
        shown(found, terminal.Terminal())


SCHEMA = 1
"""Schema of the documents of `status` and of the list. A report has its own schema."""
HEAD = ("id", "mode", "asked", "began", "ended", "seconds", "state", "exit_status", "headline", "revision", "verdict")
"""Fields of a run in the list."""


def _opened(inventory: tuple[str, ...]) -> tuple[Site, Store]:
    site = site_of(inventory, runs=False)
    return site, Store(site.settings.state_dir)


def _report(store: Store, name: str) -> dict[str, Any]:
    found = store.report(name) if name else next(iter(store.reports(1)), None)
    if found is None:
        fault = f"There is no report {name}." if name else "No run has been made yet."
        remedy = "Use one of `trainyard reprovision show --list`." if name else "Run `trainyard reprovision run` first."
        raise TrainyardError(fault, remedy=remedy)
    return found
