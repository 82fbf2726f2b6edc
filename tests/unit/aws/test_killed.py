"""The controller killed in the middle of a creation, at each of its calls that change something, and run again."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import Any

import pytest

from tests.aws.sequence import run
from tests.unit.aws.conftest import Site

# The part `killed` of `make proof`.
pytestmark = [pytest.mark.slow, pytest.mark.proof]

LIMITS = {"timeout": 60, "interval": 0.02}
CALLS = [
    *("efs:CreateFileSystem", "efs:PutLifecycleConfiguration", "efs:PutFileSystemPolicy"),
    *("ec2:CreateSecurityGroup", "ec2:AuthorizeSecurityGroupIngress"),
    *("efs:CreateMountTarget", "efs:CreateMountTarget", "efs:CreateMountTarget"),
    *("efs:CreateAccessPoint", "efs:CreateAccessPoint"),
]
"""What a creation calls to change something; each of them is the last of one run."""


def steps(site: Site) -> list[dict[str, Any]]:
    """What the role does."""
    tags = {"trainyard": "mine"}
    targets = [{"subnet_id": each, "security_groups": ["{{ security_group.id }}"]} for each in site.subnets]
    rules = {"transition_to_ia": "AFTER_30_DAYS"}
    points = [{"name": name, "path": f"/{name}", "tags": tags} for name in ("datasets", "training")]
    its_id = {"file_system_id": "{{ file_system.id }}"}
    file_system = {"creation_token": "mine", "name": "mine", "lifecycle": rules, "require_tls": True, "tags": tags}
    group = {"name": "mine-efs", "owner": "mine", "subnet_ids": site.subnets, "sources": [site.nodes]}
    return [
        {"module": module, "register": register, "options": {**options, **LIMITS}}
        for module, register, options in (
            ("efs_file_system", "file_system", file_system),
            ("efs_security_group", "security_group", group),
            ("efs_mount_target", "mount_targets", {**its_id, "targets": targets}),
            ("efs_access_point", "access_points", {**its_id, "access_points": points}),
        )
    ]


FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.aws.sequence"])


class Controller:
    """Runs the steps in a process of its own."""

    def __init__(self, site: Site) -> None:
        environment = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        self._arguments = (steps(site), environment)
        self._process: Any = None

    def pid(self) -> int:
        return int(self._process.pid)

    def run(self) -> int:
        """Its exit status; negative for the signal that ended it."""
        self.start()
        return self.end()

    def start(self) -> None:
        self._process = FORKS.Process(target=run, args=self._arguments)
        self._process.start()

    def end(self) -> int:
        self._process.join(300)
        return int(self._process.exitcode)


def there(site: Site) -> dict[str, int]:
    systems = site.file_systems()
    groups = site.ec2.describe_security_groups(GroupNames=["mine-efs"])["SecurityGroups"] if systems else []
    return {
        "file systems": len(systems),
        "targets": len(site.efs.describe_mount_targets(FileSystemId=systems[0]["FileSystemId"])["MountTargets"]),
        "access points": len(site.efs.describe_access_points()["AccessPoints"]),
        "groups": len(groups),
        "sources": sum(len(each["UserIdGroupPairs"]) for group in groups for each in group["IpPermissions"]),
    }


@pytest.mark.parametrize(
    ("answered", "hidden"),
    [
        (True, 0),
        # Each takes as long again.
        pytest.param(False, 0, marks=pytest.mark.proof),
        pytest.param(True, 1, marks=pytest.mark.proof),
    ],
    ids=["after the call", "before the call", "after the call, and it is not shown at once"],
)
def test_one_file_system_and_nothing_twice(site: Site, answered: bool, hidden: int) -> None:
    """Each run is killed at a later call than the one before, and goes on from what that has left."""
    controller, proxy = Controller(site), site.proxy
    proxy.gaps.creating, proxy.gaps.hidden = 1, hidden
    killed_at: list[str] = []
    # What is not shown at once is asked for a second time, and the run killed there again.
    while len(killed_at) < len(CALLS) or (hidden and set(killed_at) < set(CALLS)):
        proxy.rules.clear()
        proxy.losses.clear()
        # Where the call is not carried out, the next run makes it first.
        proxy.kill(controller.pid, number=1 if answered or not killed_at else 2, answered=answered)
        assert controller.run() == -signal.SIGKILL
        killed_at.append([call.name for call in proxy.calls if call.write][-1])
        assert len(site.file_systems()) <= 1 and len(killed_at) <= 3 * len(CALLS)
    assert killed_at == CALLS or (hidden and set(killed_at) == set(CALLS))
    proxy.rules.clear()
    proxy.losses.clear()
    assert controller.run() == 0
    assert there(site) == {"file systems": 1, "targets": 3, "access points": 2, "groups": 1, "sources": 1}
    proxy.gaps.hidden = 0
    proxy.calls.clear()
    assert controller.run() == 0 and proxy.names(write=True) == [], "all of it was made"


def test_two_controllers_at_once_make_one(site: Site) -> None:
    """They answer each other's questions: each is a call ahead of the other now and then."""
    site.proxy.gaps.creating, site.proxy.gaps.hidden = 1, 3
    both = Controller(site), Controller(site)
    for each in both:
        each.start()
    assert [each.end() for each in both] == [0, 0]
    assert there(site) == {"file systems": 1, "targets": 3, "access points": 2, "groups": 1, "sources": 1}
    site.proxy.calls.clear()
    assert both[0].run() == 0 and site.proxy.names(write=True) == []
