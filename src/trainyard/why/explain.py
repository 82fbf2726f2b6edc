"""The answer as a part of an error. Reporting an error must not fail because its explanation does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..core.errors import TrainyardError
from ..kube.api import Api
from ..kube.reads import read
from .answer import ABSENT, WELL
from .judge import explain
from .snapshot import snapshot
from .text import text


def explained(api: Api, run: str, namespace: str) -> tuple[str, dict[str, Any]]:
    """Explain why a run waits, makes no steps or failed.

    :return: the text and the JSON of the answer; both empty if there is no answer or nothing is wrong.
    """
    try:
        answer = explain(read(api, snapshot(run, namespace, datetime.now(UTC))))
    except TrainyardError:
        return "", {}
    return (text(answer), answer.as_json()) if answer.status != WELL and answer.state != ABSENT else ("", {})
