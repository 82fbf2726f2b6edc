"""The layer over boto3: credentials, region, pages and errors that name the call; and the reading module."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.aws.conftest import CREDENTIALS, Site
from trainyard.aws import client

# A server is asked, and asked again.
pytestmark = pytest.mark.slow

READ = {"parts": []}


@pytest.fixture
def unset(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CREDENTIALS:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("unset")
def test_no_credentials(site: Site) -> None:
    refused = site.run("efs_info", **READ)
    assert refused["msg"].startswith("There are no AWS credentials.") and "AWS_PROFILE" in refused["remedy"]
    assert site.proxy.calls == []


@pytest.mark.usefixtures("unset")
def test_half_of_the_credentials_and_no_such_profile(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    assert "missing: aws_secret_access_key" in (refused := site.run("efs_info", **READ))["msg"].lower()
    assert "The AWS credentials cannot be used" in refused["msg"]
    assert "profile (nobody)" in site.run("efs_info", **READ, profile="nobody")["msg"]


@pytest.mark.parametrize(
    ("region", "said"),
    [
        ("eu-centrl-1", "The region eu-centrl-1 has no EFS that this boto3 knows. Did you mean eu-central-1?"),
        ("mars", "The region mars has no EFS that this boto3 knows. Correct it"),
        ("cn-north-1", ""),
    ],
)
def test_regions(site: Site, region: str, said: str) -> None:
    answer = site.run("efs_info", **READ, region=region)
    assert said in answer["msg"] if said else "msg" not in answer


def test_no_region(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert "No AWS region is set. Set the region, AWS_DEFAULT_REGION" in site.run("efs_info", **READ)["msg"]


def test_an_address_where_nobody_answers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    refused = site.run("efs_info", **READ)
    assert "elasticfilesystem:DescribeFileSystems for all file systems has no answer" in refused["msg"]
    assert "the region eu-central-1" in refused["remedy"] and refused["code"] == "EndpointConnectionError"


def test_access_denied_names_the_action_and_the_resource(site: Site) -> None:
    site.proxy.refuse("efs:CreateFileSystem", "AccessDeniedException", message="User is not authorized")
    refused = site.run("efs_file_system", creation_token="mine")
    assert refused["call"] == "elasticfilesystem:CreateFileSystem" and refused["resource"] == "the file system mine"
    assert "docs/tasks/storage.md" in refused["remedy"] and refused["request_id"].startswith("request-")
    site.proxy.refuse("ec2:DescribeSubnets", "UnauthorizedOperation")
    refused = site.run("efs_security_group", name="a", owner="a", subnet_ids=site.subnets)
    assert refused["call"] == "ec2:DescribeSubnets" and site.subnets[0] in refused["msg"]


def test_credentials_that_are_renewed_meanwhile_are_hidden_too() -> None:
    class Session:
        """Has another token each time it is asked."""

        asked = 0

        def get_credentials(self) -> Session:
            return self

        def get_frozen_credentials(self) -> SimpleNamespace:
            self.asked += 1
            return SimpleNamespace(access_key="", secret_key="", token=f"token-{self.asked}")

    aws = client.Aws(Session(), None, "eu-central-1")
    assert aws._clean("token-1, token-2 and so on") == "(hidden), (hidden) and so on"


def test_credentials_that_aws_quotes_are_hidden(site: Site) -> None:
    quoted = f"The canonical request was x-amz-security-token:{CREDENTIALS['AWS_SESSION_TOKEN']} and so on"
    site.proxy.refuse("ec2:DescribeSecurityGroups", "SignatureDoesNotMatch", message=quoted)
    refused = site.run("efs_info", parts=["security_groups"])
    assert "x-amz-security-token:(hidden) and so on" in refused["msg"]


def test_throttling_ends_with_its_name(site: Site) -> None:
    site.proxy.refuse("ec2:DescribeSecurityGroups", "RequestLimitExceeded", times=9)
    refused = site.run("efs_info", parts=["security_groups"])
    assert refused["code"] == "RequestLimitExceeded"
    assert site.proxy.names() == ["efs:DescribeFileSystems"] + ["ec2:DescribeSecurityGroups"] * 3


def test_everything_is_read_from_all_pages(site: Site) -> None:
    site.proxy.gaps.page = 2
    ids = [site.efs.create_file_system(CreationToken=f"t{number}")["FileSystemId"] for number in range(5)]
    for subnet in site.subnets:
        site.efs.create_mount_target(FileSystemId=ids[4], SubnetId=subnet, SecurityGroups=[site.nodes])
    for number in range(3):
        site.efs.create_access_point(FileSystemId=ids[4], ClientToken=str(number))
    for subnet, owner in ((site.subnets[0], "one"), (site.elsewhere(), "one"), (site.subnets[0], "two")):
        site.run("efs_security_group", name=f"{owner}-efs", owner=owner, subnet_ids=[subnet], sources=["10.1.0.0/16"])
    found = site.run("efs_info")
    assert [each["id"] for each in found["file_systems"]] == ids and found["changed"] is False
    last = found["file_systems"][4]
    assert [each["subnet"] for each in last["mount_targets"]] == site.subnets
    assert {tuple(each["security_groups"]) for each in last["mount_targets"]} == {(site.nodes,)}
    assert len(last["access_points"]) == 3 and (last["backup"], last["policy"], last["lifecycle"]) == (False, {}, {})
    assert sorted(each["owner"] for each in found["security_groups"]) == ["one", "one", "two"]
    assert found["security_groups"][0]["allows"] == ["tcp 2049 from 10.1.0.0/16"]
    assert len(site.run("efs_info", owner="two", parts=["security_groups"])["security_groups"]) == 1


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"creation_token": "t1"}, ["t1"]),
        ({"creation_token": "t9"}, []),
        ({"file_system_id": "fs-00000000"}, []),
        ({"creation_token": "t1", "file_system_id": "fs-00000000"}, []),
    ],
)
def test_reading_one(site: Site, chosen: dict[str, Any], expected: list[str]) -> None:
    for token in ("t1", "t2"):
        site.efs.create_file_system(CreationToken=token)
    found = site.run("efs_info", **READ, **chosen)["file_systems"]
    assert [each["creation_token"] for each in found] == expected
    assert site.proxy.names() == ["efs:DescribeFileSystems"]
