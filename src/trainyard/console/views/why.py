"""The answer of `trainyard why` for the page of a run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...kube.reads import Reader
from ...why.judge import explain
from ...why.snapshot import snapshot

TONES = {"cause": "bad", "follows": "wait"}


def judged(name: str, namespace: str, now: datetime) -> Reader[dict[str, Any]]:
    """Read the answer as JSON, and add a colour to each finding.

    :raises TrainyardError, KubeError: as `snapshot`.
    """
    answer = explain((yield from snapshot(name, namespace, now))).as_json()
    findings = [{**each, "tone": TONES.get(each["part"], "idle")} for each in answer["findings"]]
    return {**answer, "findings": findings}
