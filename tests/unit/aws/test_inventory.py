"""inventories/aws as its users call it, with instances in a moto: listed by its plugin, validated, its storage made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.aws.conftest import REGION, Site

# Starts of Ansible.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "inventories" / "aws"
NODES = {"cp1": ("control_plane", 0), "worker1": ("workers", 1), "worker2": ("workers", 2), "worker3": ("workers", 2)}
"""Name of an instance -> its group, and which of the subnets it is in."""


STORAGE = ("-e", "efs_name=mine", "-e", "efs_interval=0.05")


def call(program: str, *arguments: str | Path) -> tuple[int, str]:
    """Status and output of one of Ansible's programs."""
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *arguments],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return (
        done.returncode,
        done.stdout if program == "ansible-inventory" and done.returncode == 0 else done.stdout + done.stderr,
    )


@pytest.fixture
def account(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The instances of a site, and others; asked without the proxy, which knows nothing of instances."""
    (image, *_) = site.ec2.describe_images()["Images"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", site.efs.meta.endpoint_url)
    for name, (group, subnet) in {**NODES, "stray": ("", 0), "theirs": ("workers", 0)}.items():
        tags = {"Name": name, "trainyard": "theirs" if name == "theirs" else "trainyard-aws", "trainyard_group": group}
        site.ec2.run_instances(
            ImageId=image["ImageId"],
            MinCount=1,
            MaxCount=1,
            SubnetId=site.subnets[subnet],
            SecurityGroupIds=[site.nodes],
            TagSpecifications=[
                {
                    "ResourceType": "instance",
                    "Tags": [{"Key": key, "Value": value} for key, value in tags.items() if value],
                }
            ],
        )
    return site


def test_the_instances_of_the_site_are_its_hosts(account: Site) -> None:
    status, said = call("ansible-inventory", "-i", SHIPPED, "--list")
    assert status == 0, said
    listed = json.loads(said)
    assert listed["control_plane"]["hosts"] == ["cp1"]
    assert sorted(listed["workers"]["hosts"]) == ["worker1", "worker2", "worker3"]
    assert sorted(listed["cluster"]["hosts"]) == sorted(NODES)
    hosts = listed["_meta"]["hostvars"]
    assert set(hosts) == set(NODES)
    assert "10.9.0." in str(hosts["cp1"]["ansible_host"]) and hosts["cp1"]["ansible_user"] == "admin"


def test_it_is_valid_when_its_user_has_set_his_own(account: Site, tmp_path: Path) -> None:
    status, said = call("ansible-playbook", "-i", SHIPPED, "playbooks/_validate.yml")
    assert status != 0 and "a name for documentation" in said and "efs_name is not set" in said, said
    assert said.count("\n  - ") == 2, said
    mine = Path(shutil.copytree(SHIPPED, tmp_path / "mine"))
    values = mine / "group_vars" / "all" / "site.yml"
    values.write_text(
        values.read_text(encoding="utf-8").replace("kubernetes.example.org", "10.9.0.4"), encoding="utf-8"
    )
    status, said = call("ansible-playbook", "-i", mine, "playbooks/_validate.yml", *STORAGE)
    assert status == 0, said


def test_instances_with_one_name_are_refused(account: Site) -> None:
    """As an Auto Scaling group makes them."""
    named = {"Name": "tag:Name", "Values": ["worker3"]}
    ((same,),) = [each["Instances"] for each in account.ec2.describe_instances(Filters=[named])["Reservations"]]
    account.ec2.create_tags(Resources=[same["InstanceId"]], Tags=[{"Key": "Name", "Value": "worker2"}])
    status, said = call("ansible-playbook", "-i", SHIPPED, "playbooks/_validate.yml", *STORAGE)
    assert status != 0 and "host worker2 is 2 instances (" in said, said


def test_the_storage_is_made_where_the_nodes_are_and_deleted_after_them(account: Site) -> None:
    status, said = call("ansible-playbook", "-i", SHIPPED, "playbooks/efs.yml", *STORAGE)
    assert status == 0, said
    (system,) = account.file_systems()
    targets = account.efs.describe_mount_targets(FileSystemId=system["FileSystemId"])["MountTargets"]
    assert sorted(each["AvailabilityZoneName"] for each in targets) == [f"{REGION}{zone}" for zone in "abc"]
    (group,) = account.ec2.describe_security_groups(GroupNames=["mine-efs"])["SecurityGroups"]
    assert [pair["GroupId"] for rule in group["IpPermissions"] for pair in rule["UserIdGroupPairs"]] == [account.nodes]

    # With nothing running, the inventory has no host at all.
    found = account.ec2.describe_instances()["Reservations"]
    account.ec2.terminate_instances(InstanceIds=[each["InstanceId"] for one in found for each in one["Instances"]])
    confirmed = ("-e", f"efs_confirm={system['FileSystemId']}", *STORAGE)
    status, said = call("ansible-playbook", "-i", SHIPPED, "playbooks/efs_down.yml", *confirmed)
    assert status != 0 and "does not report whether claims are bound to it" in said and account.file_systems(), said
    gone = ("-e", "efs_cluster_gone=true")
    status, said = call("ansible-playbook", "-i", SHIPPED, "playbooks/efs_down.yml", *confirmed, *gone)
    assert status == 0 and account.file_systems() == [], said


def test_without_instances_nothing_is_made(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", site.efs.meta.endpoint_url)
    status, said = call("ansible-playbook", "-i", SHIPPED, "playbooks/efs.yml", *STORAGE)
    assert status != 0 and site.file_systems() == [] and "efs_subnet_ids" in said, said
