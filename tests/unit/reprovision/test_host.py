"""What the role writes and refuses on the host of the schedule, with its own variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template
from ansible.utils.collection_loader import AnsibleCollectionConfig

ROLE = Path(__file__).resolve().parents[3] / "roles" / "reprovision"
OWN = "/var/lib/trainyard-reprovision"

if AnsibleCollectionConfig.collection_finder is None:
    init_plugin_loader()


def rendered(text: str, **given: Any) -> Any:
    values: dict[str, Any] = {"site_dir": "/home/alice/site", "inventory_hostname": "ctl1"}
    for name in ("defaults", "vars"):
        values |= yaml.safe_load((ROLE / name / "main.yml").read_text(encoding="utf-8"))
    trusted = {name: trust_as_template(value) if isinstance(value, str) else value for name, value in values.items()}
    return Templar(loader=DataLoader(), variables={**trusted, **given}).template(trust_as_template(text))


def tasks(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((ROLE / "tasks" / f"{name}.yml").read_text(encoding="utf-8"))
    return found


def refusals(**given: Any) -> list[str]:
    """What the role says of the folders of a schedule."""
    folders = given.pop("folders", [{}, {"isdir": True}])
    given["__reprovision_folders"] = {"results": [{"stat": each} for each in folders]}
    (task,) = (each for each in tasks("preflight") if each["name"].endswith("cannot write to"))
    return [rendered(each["message"], **given) for each in task["loop"] if not rendered(each["that"], **given)]


@pytest.mark.parametrize(
    ("state_dir", "there"),
    [
        ("{{ site_dir }}/reprovision", f"{OWN}/site/reprovision"),
        ("{{ site_dir }}", f"{OWN}/site"),
        ("/home/alice/sites/x", "/home/alice/sites/x"),
        ("/srv/reports", "/srv/reports"),
        ("~/reports", f"{OWN}/home/reports"),
    ],
)
def test_the_reports_lie_where_the_service_can_write(state_dir: str, there: str) -> None:
    given = {"reprovision_state_dir": rendered(state_dir)}
    assert rendered("{{ __reprovision_state_dir }}", **given) == there
    unit = (ROLE / "templates" / "service.j2").read_text(encoding="utf-8")
    line = next(each for each in unit.splitlines() if "reprovision_state_dir" in each)
    assert rendered(line, **given) == f"ReadWritePaths=-{there}"
    # The program reads the same of its second inventory.
    assert "'reprovision_state_dir': __reprovision_state_dir," in (ROLE / "templates" / "controller.yml.j2").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {
            "reprovision_state_dir": "/srv/reports",
            "folders": [{"exists": True, "pw_name": "trainyard-reprovision"}, {}],
        },
        {"reprovision_metrics_file": "/var/lib/prometheus/node-exporter/trainyard.prom"},
        {"reprovision_metrics_file": "/run/metrics/x.prom"},
    ],
)
def test_folders_that_can_be(given: dict[str, Any]) -> None:
    assert refusals(**given) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"reprovision_state_dir": "/home/alice/sites/x"},
            "reprovision_state_dir is /home/alice/sites/x on ctl1. Set",
        ),
        ({"reprovision_state_dir": "/srv"}, "reprovision_state_dir is /srv on ctl1. Set"),
        ({"reprovision_state_dir": "reports"}, "reprovision_state_dir is reports on ctl1. Set"),
        ({"reprovision_state_dir": "/srv/my reports"}, "reprovision_state_dir is /srv/my reports on ctl1. Set"),
        ({"reprovision_dir": "/root/x"}, "reprovision_dir is /root/x"),
        (
            {"reprovision_state_dir": "/var/lib", "folders": [{"exists": True, "pw_name": "root"}, {}]},
            "belongs to root",
        ),
        (
            {"reprovision_metrics_file": "/srv/x/y.prom", "folders": [{}, {"exists": False}]},
            "its folder does not exist",
        ),
        (
            {"reprovision_metrics_file": "/tmp/metrics/y.prom"},
            "hidden from the service. Set a file in the folder of the node",
        ),
    ],
)
def test_folders_that_only_break_on_the_host(given: dict[str, Any], said: str) -> None:
    (told,) = refusals(**given)
    assert said in told


def test_reports_go_with_the_schedule_where_they_are_its_own() -> None:
    by_name = {each["name"].partition("| ")[2]: each for each in tasks("absent")}
    removed = by_name["Remove the reports"]
    for stat, expected in (({"pw_name": "trainyard-reprovision"}, True), ({"pw_name": "root"}, False), ({}, False)):
        there = {"__reprovision_reports": {"stat": stat}, "__reprovision_state_dir": "/srv/reports"}
        assert all(rendered(f"{{{{ {each} }}}}", **there) for each in removed["when"]) is expected
    # The user could exchange a folder on the way to one below the service's own, which goes as a whole.
    assert not rendered(
        f"{{{{ {removed['when'][0]} }}}}", __reprovision_state_dir="/var/lib/trainyard-reprovision/site/x"
    )
    # Before the user goes, by whom they are known.
    assert list(by_name).index("Remove the reports") < list(by_name).index("Remove the user")


def test_the_file_with_the_address_is_the_users_alone() -> None:
    files = [each for task in tasks("configure") for each in task.get("host_files", {}).get("files", [])]
    (entry,) = (each for each in files if each.get("template") == "schedule.json.j2")
    assert (entry["mode"], entry["group"], entry["secret"]) == ("0640", "{{ reprovision_user }}", True)
