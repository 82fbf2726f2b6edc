"""The pages of a world in memory, as the console makes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jinja2

from tests.browser.answers import answer
from tests.browser.world import World
from tests.conftest import ROOT
from trainyard.console.views.page import Page, Params
from trainyard.kube.reads import Get, Unread

USER = {"name": "system:serviceaccount:trainyard-console:user-alice", "csrf": "csrf"}


def read(world: World, page: Page, params: Params, refused: Mapping[str, int] | None = None) -> Any:
    """What a page's reader returns.

    :param refused: path -> status of an answer that does not come.
    """
    reader, got = page.read(params), None
    while True:
        try:
            wanted = reader.send(got)
        except StopIteration as end:
            return end.value
        asked = [_ask(world, each, refused or {}) for each in ((wanted,) if isinstance(wanted, Get) else wanted)]
        got = asked[0] if isinstance(wanted, Get) else tuple(asked)


def _ask(world: World, wanted: Get, refused: Mapping[str, int]) -> Any:
    if wanted.path in refused:
        return Unread(wanted.path, refused[wanted.path], f"{wanted.path} is refused")
    status, found = answer(world, wanted.path, wanted.query, wanted.accept)
    return found if status == 200 else Unread(wanted.path, status, found["message"])


def view(world: World, page: Page, refused: Mapping[str, int] | None = None, **params: str) -> dict[str, Any]:
    """The view of a page, which must be JSON."""
    made = page.build(read(world, page, params, refused), params, world.now)
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    return made


def html(page: Page, made: Mapping[str, Any], *actions: str) -> str:
    """The page itself, with the settings of the console's templates."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROOT / "src" / "trainyard" / "console" / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template(f"{page.name}.html.j2").render(
        view=made, user=USER, site="lab", notice="", actions=actions,
        tensorboard="https://console.test:30444",
    )  # fmt: skip
