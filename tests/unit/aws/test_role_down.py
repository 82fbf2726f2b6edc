"""playbooks/efs_down.yml as users call it, against moto: what is refused, what is gone on with, and what is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.aws.conftest import Site
from tests.unit.aws.user import ALL, NOTHING, User

# Starts of Ansible.
pytestmark = pytest.mark.slow


@pytest.fixture
def user(site: Site, tmp_path: Path) -> User:
    return User(site, tmp_path)


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


def test_nothing_is_deleted_before_all_of_it_is_planned(user: User) -> None:
    assert user.play("efs.yml")[0]
    (its_id,) = [each["FileSystemId"] for each in user.site.file_systems()]
    confirmed = ("-e", f"efs_confirm={its_id}", "-e", "efs_cluster_gone=true")
    user.site.proxy.refuse("ec2:DescribeSecurityGroups", "UnauthorizedOperation")
    done, _, said = user.play("efs_down.yml", *confirmed)
    assert not done and "ec2:DescribeSecurityGroups" in said and user.left() == ALL, said


def test_a_file_system_of_another_name_is_not_called_gone(user: User) -> None:
    its_id = user.site.efs.create_file_system(CreationToken="theirs")["FileSystemId"]
    done, _, said = user.play("efs_down.yml", "-e", f"efs_confirm={its_id}", "-e", "efs_cluster_gone=true")
    assert not done and f"The file system {its_id} has the token theirs, but efs_name is mine" in said, said


def test_no_way_leads_round_the_question_for_claims(user: User) -> None:
    tags = [{"Key": "trainyard", "Value": "mine"}]
    its_id = user.site.efs.create_file_system(CreationToken="mine", Tags=tags)["FileSystemId"]
    user.site.run("efs_security_group", name="mine-efs", owner="mine", subnet_ids=user.site.subnets)
    user.site.proxy.calls.clear()
    for arguments in (
        ("--limit", "w1", "--skip-tags", "always"),
        ("--tags", "none"),
        ("--start-at-task", "absent | Plan the deletion"),
        ("--start-at-task", "absent | Carry out the deletion"),
    ):
        user.play("efs_down.yml", "-e", f"efs_confirm={its_id}", *arguments)
        assert user.site.proxy.names(write=True) == [], arguments
    # The same but for the way round it.
    done, _, said = user.play("efs_down.yml", "-e", f"efs_confirm={its_id}", "-e", "efs_cluster_gone=true")
    assert done and user.left() == NOTHING, said
