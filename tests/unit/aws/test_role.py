"""playbooks/efs.yml and efs_down.yml as users call them, against moto: to three zones, and back to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.aws.conftest import Site
from tests.unit.aws.user import ALL, NOTHING, User
from tests.unit.aws.volumes import cluster, volume

# Starts of Ansible.
pytestmark = pytest.mark.slow

LOOKS = {
    *("ec2:DescribeSubnets", "ec2:DescribeSecurityGroups", "ec2:DescribeNetworkInterfaces", "efs:DescribeFileSystems"),
    *("efs:DescribeMountTargets", "efs:DescribeAccessPoints"),
    *("efs:DescribeFileSystemPolicy", "efs:DescribeLifecycleConfiguration"),
}


@pytest.fixture
def user(site: Site, tmp_path: Path) -> User:
    return User(site, tmp_path)


# The part `efs_playbooks` of `make proof`: twelve runs.
@pytest.mark.proof
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
    # One by the id of the file system, one as a folder of the nodes, one by the address of a mount target.
    (address, *_) = [
        each["IpAddress"] for each in user.site.efs.describe_mount_targets(FileSystemId=its_id)["MountTargets"]
    ]
    bound = [volume("a", "Bound", "mine", **source), volume("b", "Bound", "datasets", hostPath={"path": "/mnt"})]
    bound.append(volume("c", "Bound", "served", nfs={"server": address, "path": "/"}))
    # What the inventory says by now does not count: the nodes have it still.
    user.values |= {"storage_backend": "", "efs_mount_mode": "none"}
    proxy.calls.clear()
    for volumes, arguments, expected in (
        ([], (), f"efs_confirm is empty. To delete the file system {its_id}"),
        (None, ("-e", f"efs_confirm={its_id}"), "Failed to find API for resource"),
        (
            [],
            ("-e", f"efs_confirm={its_id}", "-e", "efs_kubeconfig=/nonexistent"),
            "does not report whether claims are bound to it",
        ),
        (
            bound,
            ("-e", f"efs_confirm={its_id}"),
            "that may belong to it: trainings/datasets, trainings/mine, trainings/served.",
        ),
        ([], ("--limit", "w1", "-e", f"efs_confirm={its_id}"), "leaves out localhost"),
    ):
        with cluster(tmp_path, volumes) as kubeconfig:
            user.values["control_plane_kubeconfig"] = str(kubeconfig)
            done, _, said = user.play("efs_down.yml", *arguments)
        assert not done and expected in said, said
    assert proxy.names(write=True) == [] and user.left() == ALL

    with cluster(tmp_path, [volume("a", "Released", "mine", **source)]) as kubeconfig:
        user.values["control_plane_kubeconfig"] = str(kubeconfig)
        done, changes, said = user.play("efs_down.yml", "-e", f"efs_confirm={its_id}", "--check")
        assert done and changes == 4 and user.left() == ALL, said
        done, changes, said = user.play("efs_down.yml", "-e", f"efs_confirm={its_id}")
        assert done and changes == 4, said
        assert user.left() == NOTHING
        done, changes, said = user.play("efs_down.yml", "-e", f"efs_confirm={its_id}")
        assert done and changes == 0 and f"no file system of mine, and no {its_id}" in said, said


def test_what_one_part_refuses_changes_no_other(user: User) -> None:
    for values, expected in (
        ({"efs_subnet_ids": [user.site.subnets[0], user.site.elsewhere()]}, "in several VPCs"),
        # The last part of all.
        ({"efs_access_points": [{"name": "a", "path": "a"}]}, "cannot have the path a: not absolute"),
    ):
        usual = dict(user.values)
        user.values |= values
        # As site.yml calls it; efs.yml looks at the inputs before.
        done, changes, said = user.play("_efs.yml")
        user.values = usual
        assert not done and changes == 0 and expected in said, said
    assert user.left() == NOTHING and user.site.proxy.names(write=True) == []


def test_inputs_are_looked_at_before_aws_is(user: User) -> None:
    user.values |= {"efs_troughput_mode": "bursting", "efs_access_points": [{"name": "a", "path": "a"}]}
    done, _, said = user.play("efs.yml")
    assert not done and "Did you mean efs_throughput_mode?" in said and "not absolute" in said, said
    assert user.site.proxy.names() == []


def test_what_a_run_that_was_cut_off_left_in_the_making_is_waited_for(user: User) -> None:
    assert user.play("efs.yml")[0]
    (its_id,) = [each["FileSystemId"] for each in user.site.file_systems()]
    for each in user.site.efs.describe_mount_targets(FileSystemId=its_id)["MountTargets"]:
        user.site.proxy.gaps.shows(each["MountTargetId"], *["creating"] * 4)
    done, changes, said = user.play("efs.yml")
    assert done and changes == 0, said
    seen = user.site.through.describe_mount_targets(FileSystemId=its_id)["MountTargets"]
    assert {each["LifeCycleState"] for each in seen} == {"available"}, "the run has ended before they can be mounted"
