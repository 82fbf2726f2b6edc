"""AWS for the tests of this folder: a moto, the proxy before it, and the modules called as Ansible calls them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import boto3
import botocore.session
import pytest
from ansible.module_utils.testing import patch_module_args

from tests.aws.proxy import Proxy
from tests.aws.server import aws
from trainyard.aws import client

REGION = "eu-central-1"

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY0",
    "AWS_SESSION_TOKEN": "FwoGZXIvYXdzEXAMPLETOKEN",
}


class Site:
    """One account in one region, empty but for its network.

    :param proxy: what the modules talk to.
    :param direct: address of moto itself, for looking from outside; `through` goes by the proxy.
    """

    def __init__(self, proxy: Proxy, direct: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.proxy, self._capsys = proxy, capsys
        self.efs = boto3.client("efs", region_name=REGION, endpoint_url=direct)
        self.ec2 = boto3.client("ec2", region_name=REGION, endpoint_url=direct)
        self.through = boto3.client("efs", region_name=REGION, endpoint_url=proxy.url)

    @cached_property
    def vpc(self) -> str:
        return str(self.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"])

    @cached_property
    def subnets(self) -> list[str]:
        """One in each of three zones."""
        return [self.subnet(self.vpc, zone, number) for number, zone in enumerate("abc")]

    @cached_property
    def nodes(self) -> str:
        """The security group of the nodes."""
        return self.group("nodes")

    def subnet(self, vpc: str, zone: str, number: int) -> str:
        """A new subnet in a zone of the region."""
        block, zone = f"10.9.{number}.0/24", f"{REGION}{zone}"
        return str(self.ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone=zone)["Subnet"]["SubnetId"])

    def elsewhere(self) -> str:
        """A new subnet in another VPC, in zone c."""
        return self.subnet(self.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"], "c", 0)

    def group(self, name: str) -> str:
        """A new security group."""
        made = self.ec2.create_security_group(GroupName=name, Description="For tests", VpcId=self.vpc)
        return str(made["GroupId"])

    def run(self, name: str, /, *, check: bool = False, **options: Any) -> dict[str, Any]:
        """The result of a module."""
        module = importlib.import_module(f"library.{name}")
        waits = {} if name == "efs_info" else {"timeout": 60, "interval": 0.02}
        arguments = {**waits, **options, "_ansible_check_mode": check, "_ansible_diff": True}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        text = self._capsys.readouterr().out
        for secret in CREDENTIALS.values():
            assert secret not in text, "a result has credentials"
        return json.loads(text.splitlines()[-1])

    def both(self, name: str, /, **options: Any) -> dict[str, Any]:
        """The result of a run, after one in check mode that has changed nothing and predicted this one."""
        before = len(self.proxy.calls)
        planned = self.run(name, check=True, **options)
        assert "msg" not in planned, planned
        assert not [call.name for call in self.proxy.calls[before:] if call.write], "check mode has changed something"
        done = self.run(name, **options)
        assert "msg" not in done, done
        assert (done["changed"], done["steps"]) == (planned["changed"], planned["steps"])
        assert done["diff"] == planned["diff"]
        return done

    def settles(self, name: str, /, **options: Any) -> dict[str, Any]:
        """The result of `both`, after which the same again changes nothing and finds what was predicted."""
        done = self.both(name, **options)
        again = self.both(name, **options)
        assert again["changed"] is False and again["steps"] == []
        assert again["diff"]["before"] == done["diff"]["after"]
        return done

    def file_systems(self) -> list[dict[str, Any]]:
        """What there really is."""
        return self.efs.describe_file_systems(MaxItems=1000)["FileSystems"]


@pytest.fixture(scope="session")
def served() -> Iterator[tuple[Proxy, str]]:
    """The servers; and botocore reads its models once, where every session has its own."""
    with pytest.MonkeyPatch.context() as patch, aws() as both:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield both


@pytest.fixture
def site(
    served: tuple[Proxy, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Site]:
    proxy, direct = served
    proxy.reset()
    for name, value in {**CREDENTIALS, "AWS_DEFAULT_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    monkeypatch.setattr(client, "ATTEMPTS", 3)
    made = Site(proxy, direct, capsys)
    yield made
    assert proxy.problems == []
