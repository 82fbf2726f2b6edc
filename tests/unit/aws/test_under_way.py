"""What another run has under way, or one that was cut off has left half made."""

from __future__ import annotations

import pytest

from tests.unit.aws.conftest import Site

# A server is asked, and asked again.
pytestmark = pytest.mark.slow

FILE_SYSTEM = "efs_file_system"
MODULE = "efs_mount_target"


@pytest.fixture
def its_id(site: Site) -> str:
    return str(site.efs.create_file_system(CreationToken="mine")["FileSystemId"])


def test_a_deletion_goes_on_with_what_was_still_being_made(site: Site, its_id: str) -> None:
    site.run(MODULE, file_system_id=its_id, targets=[{"subnet_id": site.subnets[0]}])
    site.proxy.gaps.deleting, site.proxy.gaps.lagging = 1, ("creating", "error")
    gone = site.run(MODULE, state="absent", file_system_id=its_id, confirm=its_id)
    assert gone.get("changed") is True and "msg" not in gone, gone
    assert site.efs.describe_mount_targets(FileSystemId=its_id)["MountTargets"] == []


def test_other_groups_for_one_that_is_still_being_made(site: Site, its_id: str) -> None:
    (made,) = site.run(MODULE, file_system_id=its_id, targets=[{"subnet_id": site.subnets[0]}])["mount_targets"]
    site.proxy.gaps.shows(made["id"], "creating", "creating", "creating")
    target = {"subnet_id": site.subnets[0], "security_groups": [site.nodes]}
    site.settles(MODULE, file_system_id=its_id, targets=[target], purge_security_groups=True)
    found = site.efs.describe_mount_target_security_groups(MountTargetId=made["id"])
    assert found["SecurityGroups"] == [site.nodes]


def test_another_run_that_changes_the_file_system_is_waited_for(site: Site, its_id: str) -> None:
    site.proxy.refuse("efs:CreateMountTarget", "IncorrectFileSystemLifeCycleState", times=3)
    site.settles(MODULE, file_system_id=its_id, targets=[{"subnet_id": site.subnets[0]}])


def test_another_run_that_changes_it_meanwhile_is_waited_for(site: Site) -> None:
    made = site.run(FILE_SYSTEM, creation_token="mine", throughput_mode="bursting")["file_system"]
    site.proxy.refuse("efs:UpdateFileSystem", "IncorrectFileSystemLifeCycleState", times=3)
    site.settles(FILE_SYSTEM, creation_token="mine", throughput_mode="elastic")
    assert site.file_systems()[0]["FileSystemId"] == made["id"]
