"""playbooks/efs.yml and efs_down.yml as users call them, against moto: to three zones, and back to nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.aws.conftest import Site
from tests.unit.aws.volumes import cluster, volume

# Starts of Ansible.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]

LOOKS = {
    *("ec2:DescribeSubnets", "ec2:DescribeSecurityGroups", "ec2:DescribeNetworkInterfaces", "efs:DescribeFileSystems"),
    *("efs:DescribeMountTargets", "efs:DescribeAccessPoints", "efs:DescribeBackupPolicy"),
    *("efs:DescribeFileSystemPolicy", "efs:DescribeLifecycleConfiguration"),
}


class User:
    """Calls playbooks with an inventory of one site.

    :param folder: keeps the inventory.
    """

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.folder = site, folder
        self.values: dict[str, Any] = {
            "efs_name": "mine",
            "efs_subnet_ids": site.subnets,
            "efs_clients": [site.nodes],
            "efs_lifecycle": {"transition_to_ia": "AFTER_30_DAYS"},
            "efs_timeout": 60,
            "efs_interval": 0.05,
            "storage_backend": "efs_csi",
            "control_plane_kubeconfig": "/nonexistent",
        }

    def play(self, playbook: str, *arguments: str) -> tuple[bool, int, str]:
        """Whether a playbook succeeded, how many of its tasks changed something, and its output in one line."""
        hosts = {"workers": {"hosts": {"w1": {}}}, "cluster": {"children": {"workers": {}}}}
        inventory = {"all": {"vars": self.values, "children": hosts}}
        (self.folder / "hosts.yml").write_text(json.dumps(inventory), encoding="utf-8")
        done = subprocess.run(
            [
                Path(sys.executable).with_name("ansible-playbook"),
                f"playbooks/{playbook}",
                "-i",
                self.folder / "hosts.yml",
                *arguments,
            ],
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        changed = re.findall(r"^localhost +: ok=\d+ +changed=(\d+)", done.stdout, re.MULTILINE)
        return done.returncode == 0, sum(map(int, changed)), " ".join((done.stdout + done.stderr).split())

    def left(self) -> dict[str, int]:
        """What there is in the account beside its network."""
        efs, groups = self.site.efs, self.site.ec2.describe_security_groups()["SecurityGroups"]
        systems = self.site.file_systems()
        targets = [efs.describe_mount_targets(FileSystemId=each["FileSystemId"])["MountTargets"] for each in systems]
        return {
            "file systems": len(systems),
            "mount targets": sum(map(len, targets)),
            "access points": len(efs.describe_access_points()["AccessPoints"]),
            "security groups": len([each for each in groups if each["GroupName"] == "mine-efs"]),
            "interfaces": len(self.site.ec2.describe_network_interfaces()["NetworkInterfaces"]),
        }


NOTHING = {"file systems": 0, "mount targets": 0, "access points": 0, "security groups": 0, "interfaces": 0}
ALL = {"file systems": 1, "mount targets": 3, "access points": 2, "security groups": 1, "interfaces": 3}


@pytest.fixture
def user(site: Site, tmp_path: Path) -> User:
    return User(site, tmp_path)


def test_from_nothing_to_three_zones_and_back(user: User, tmp_path: Path) -> None:
    proxy, gaps = user.site.proxy, user.site.proxy.gaps
    gaps.hidden, gaps.creating, gaps.deleting = 1, 1, 1
    planned, changes, said = user.play("efs.yml", "--check", "--diff")
    assert planned and changes == 4, said
    assert proxy.names(write=True) == [] and user.left() == NOTHING

    done, changes, said = user.play("efs.yml")
    assert done and changes == 4, said
    assert user.left() == ALL

    proxy.calls.clear()
    done, changes, said = user.play("efs.yml")
    assert done and changes == 0, said
    assert sorted(proxy.names()) == sorted(LOOKS), "one question for each kind of resource"

    (its_id,) = [each["FileSystemId"] for each in user.site.file_systems()]
    source = {"csi": {"driver": "efs.csi.aws.com", "volumeHandle": f"{its_id}::fsap-1"}}
    # One by the id of the file system; where the nodes have it as a folder, by the name of its claim and by its path.
    folders = {"datasets": "/mnt", "their": "/srv/trainyard/shared/their", "far": "/srv/trainyard/sharedness"}
    bound = [volume("a", "Bound", "mine", **source)]
    far = [volume(claim, "Bound", claim, hostPath={"path": path}) for claim, path in folders.items()]
    bound += far
    # What the inventory says by now does not count: the nodes have it still.
    user.values |= {"storage_backend": "", "efs_mount_mode": "none"}
    proxy.calls.clear()
    for volumes, arguments, expected in (
        ([], (), f"efs_confirm={its_id}; efs_confirm is empty"),
        (None, ("-e", f"efs_confirm={its_id}"), "does not say whether claims are bound to it"),
        (bound, ("-e", f"efs_confirm={its_id}"), "the claims trainings/mine, trainings/datasets, trainings/their."),
        ([], ("--limit", "w1", "-e", f"efs_confirm={its_id}"), "leaves out localhost"),
    ):
        with cluster(tmp_path, volumes or []) as kubeconfig:
            user.values["control_plane_kubeconfig"] = str(kubeconfig) if volumes is not None else "/nonexistent"
            done, _, said = user.play("efs_down.yml", *arguments)
        assert not done and expected in said, said
    assert proxy.names(write=True) == [] and user.left() == ALL

    user.values["efs_mount_mode"] = "absent"
    with cluster(tmp_path, [volume("a", "Released", "mine", **source), *far]) as kubeconfig:
        user.values["control_plane_kubeconfig"] = str(kubeconfig)
        done, changes, said = user.play("efs_down.yml", "-e", f"efs_confirm={its_id}", "--check")
        assert done and changes == 4 and user.left() == ALL, said
        done, changes, said = user.play("efs_down.yml", "-e", f"efs_confirm={its_id}")
        assert done and changes == 4, said
        assert user.left() == NOTHING
        done, changes, said = user.play("efs_down.yml", "-e", f"efs_confirm={its_id}")
        assert done and changes == 0, said


def test_what_one_part_refuses_changes_no_other(user: User) -> None:
    for values, expected in (
        ({"efs_subnet_ids": [user.site.subnets[0], user.site.elsewhere()]}, "in several VPCs"),
        # The last part of all.
        ({"efs_access_points": [{"name": "a", "path": "a"}]}, "is not absolute"),
    ):
        usual = dict(user.values)
        user.values |= values
        done, changes, said = user.play("efs.yml")
        user.values = usual
        assert not done and changes == 0 and expected in said, said
    assert user.left() == NOTHING and user.site.proxy.names(write=True) == []


def test_what_a_run_that_was_cut_off_left_in_the_making_is_waited_for(user: User) -> None:
    assert user.play("efs.yml")[0]
    (its_id,) = [each["FileSystemId"] for each in user.site.file_systems()]
    for each in user.site.efs.describe_mount_targets(FileSystemId=its_id)["MountTargets"]:
        user.site.proxy.gaps.shows(each["MountTargetId"], *["creating"] * 4)
    done, changes, said = user.play("efs.yml")
    assert done and changes == 0, said
    seen = user.site.through.describe_mount_targets(FileSystemId=its_id)["MountTargets"]
    assert {each["LifeCycleState"] for each in seen} == {"available"}, "the run has ended before they can be mounted"


def test_a_teardown_that_was_cut_off_is_gone_on_with(user: User) -> None:
    assert user.play("efs.yml")[0]
    (its_id,) = [each["FileSystemId"] for each in user.site.file_systems()]
    confirmed = ("-e", f"efs_confirm={its_id}", "-e", "efs_cluster_gone=true")
    user.site.proxy.refuse("ec2:DeleteSecurityGroup", "UnauthorizedOperation")
    done, _, said = user.play("efs_down.yml", *confirmed)
    assert not done and "ec2:DeleteSecurityGroup" in said, said
    assert user.left() == {**NOTHING, "file systems": 1, "security groups": 1}
    done, changes, said = user.play("efs_down.yml", *confirmed)
    assert done and changes == 2, said
    assert user.left() == NOTHING


@pytest.mark.parametrize(
    "arguments",
    [
        ("--limit", "w1", "--skip-tags", "always"),
        ("--tags", "none"),
        ("--start-at-task", "absent | Delete the security group"),
        ("--start-at-task", "absent | Delete the file system"),
    ],
    ids=" ".join,
)
def test_no_way_leads_round_the_question_for_claims(user: User, arguments: tuple[str, ...]) -> None:
    its_id = user.site.efs.create_file_system(CreationToken="mine")["FileSystemId"]
    user.site.run("efs_security_group", name="mine-efs", owner="mine", subnet_ids=user.site.subnets)
    user.site.proxy.calls.clear()
    user.play("efs_down.yml", "-e", f"efs_confirm={its_id}", *arguments)
    assert user.site.proxy.names(write=True) == []
