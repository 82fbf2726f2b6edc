"""Tests of the CI examples: they run exactly the reviewed code, whatever a tag or a form contains later."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from checkout import ROOT

WORKFLOW = ROOT / "docs" / "ci" / "github.yml"


def steps() -> list[dict[str, Any]]:
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_actions_are_named_by_commit() -> None:
    uses = [step["uses"] for step in steps() if "uses" in step]
    assert uses and all(re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", each) for each in uses), uses


def test_no_script_has_an_expression_in_it() -> None:
    scripts = [step["run"] for step in steps() if "run" in step]
    assert scripts and not [each for each in scripts if "${{" in each]


@pytest.mark.parametrize("name", ["SECURITY.md", "docs/concepts/security.md"])
def test_what_the_pages_of_security_name_is_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:tests|workloads|docs)/[\w/.-]+)`", text))
    assert named or name == "SECURITY.md"
    assert not [each for each in named if not (ROOT / each).exists()]
