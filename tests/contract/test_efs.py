"""Tests that the page of EFS parameters matches the model, and names existing options."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from checkout import ROOT, load

MODEL = botocore.session.get_session().get_service_model("efs")


PAGE = load(ROOT / "tools/efs_parameters.py")


def _option(module: str, path: str) -> dict[str, Any]:
    """Return the specification of an option; `a.b` is `b` of the dictionaries in `a`."""
    options = load(ROOT / f"library/{module}.py").ARGUMENT_SPEC
    names = path.split(".")
    for name in names[:-1]:
        options = options[name]["options"]
    return options[names[-1]]


def test_the_page_is_current() -> None:
    assert PAGE.TARGET.read_text(encoding="utf-8") == PAGE.render(), "run `python3 tools/efs_parameters.py`"


def test_every_option_on_it_exists() -> None:
    for parameters in PAGE.OPTIONS.values():
        for module, option in parameters.values():
            assert _option(module, option)["type"], f"{module}: {option}"


def test_it_decides_on_nothing_that_the_model_does_not_have() -> None:
    for table in (PAGE.OPTIONS, PAGE.LEFT_OUT, PAGE.BY_ITSELF):
        for operation, names in table.items():
            assert set(names) <= set(PAGE.parameters(MODEL.operation_model(operation).input_shape)), operation
            assert operation not in PAGE.NOT_CALLED
    assert set(MODEL.operation_names) >= set(PAGE.NOT_CALLED)


@pytest.mark.parametrize(
    ("shape", "module", "option"),
    [
        ("PerformanceMode", "efs_file_system", "performance_mode"),
        ("ThroughputMode", "efs_file_system", "throughput_mode"),
        ("TransitionToIARules", "efs_file_system", "lifecycle.transition_to_ia"),
        ("TransitionToPrimaryStorageClassRules", "efs_file_system", "lifecycle.transition_to_primary"),
        ("IpAddressType", "efs_mount_target", "targets.ip_address_type"),
    ],
)
def test_every_value_of_the_model_can_be_chosen(shape: str, module: str, option: str) -> None:
    assert sorted(_option(module, option)["choices"]) == sorted(MODEL.shape_for(shape).enum)


def test_every_state_of_the_model_has_a_meaning_for_each_wait() -> None:
    from trainyard.aws.client import AVAILABLE, GONE, LEAVING

    known = set(MODEL.shape_for("LifeCycleState").enum)
    assert AVAILABLE.reached | AVAILABLE.on_the_way | LEAVING | {"error"} == known | {None}
    assert GONE.reached | GONE.on_the_way | {"creating", "error"} == known | {None}
