"""Module efs_security_group against moto: its whole life, each step in check mode first, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.aws.conftest import Site

# A server is asked, and asked again.
pytestmark = pytest.mark.slow

MODULE = "efs_security_group"


def wanted(site: Site, **more: Any) -> dict[str, Any]:
    return {"name": "mine-efs", "owner": "mine", "subnet_ids": site.subnets, **more}


def rules(site: Site, its_id: str) -> list[str]:
    (group,) = site.ec2.describe_security_groups(GroupIds=[its_id])["SecurityGroups"]
    return sorted(
        f"{each['IpProtocol']} {each.get('FromPort')} {source}"
        for each in group["IpPermissions"]
        for source in (
            *(one["GroupId"] for one in each["UserIdGroupPairs"]),
            *(one["CidrIp"] for one in each["IpRanges"]),
            *(one["CidrIpv6"] for one in each["Ipv6Ranges"]),
        )
    )


def test_whole_life(site: Site) -> None:
    made = site.settles(MODULE, **wanted(site, sources=[site.nodes, "10.1.0.0/16"], tags={"team": "a"}))
    its_id = made["security_group"]["id"]
    assert made["steps"] == [
        f"Create the security group mine-efs in {site.vpc}",
        f"Allow tcp 2049 from {site.nodes}",
        "Allow tcp 2049 from 10.1.0.0/16",
    ]
    assert rules(site, its_id) == sorted([f"tcp 2049 {site.nodes}", "tcp 2049 10.1.0.0/16"])
    assert made["security_group"]["vpc_id"] == site.vpc

    by_hand = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    site.ec2.authorize_security_group_ingress(GroupId=its_id, IpPermissions=[by_hand])
    changed = site.settles(MODULE, **wanted(site, sources=["10.1.0.0/16", "2001:db8::/56"], tags={"team": "b"}))
    assert changed["steps"] == ["Allow tcp 2049 from 2001:db8::/56", "Tag it: team=b"]
    assert len(rules(site, its_id)) == 4, "nothing is removed unasked"
    purged = site.settles(MODULE, **wanted(site, sources=["10.1.0.0/16"], purge_rules=True, tags={}, purge_tags=True))
    assert [step.split(":")[0] for step in purged["steps"]] == [
        f"No longer allow tcp 2049 from {site.nodes}, tcp 2049 from 2001", "Remove tags of it"
    ]  # fmt: skip
    assert rules(site, its_id) == ["tcp 2049 10.1.0.0/16"]

    removal = {"name": "mine-efs", "owner": "mine", "state": "absent"}
    assert site.both(MODULE, **removal)["steps"] == [f"Delete the security group mine-efs ({its_id}) of {site.vpc}"]
    assert site.both(MODULE, **removal)["changed"] is False


def test_one_of_somebody_else_is_neither_changed_nor_deleted(site: Site) -> None:
    site.group("mine-efs")
    refused = site.run(MODULE, **wanted(site, sources=[site.nodes]))
    assert "was not made for mine: its tag trainyard is missing" in refused["msg"] and refused["changed"] is False
    refused = site.run(MODULE, state="absent", name="mine-efs", owner="mine", vpc_id=site.vpc)
    assert "was not made for mine" in refused["msg"]
    assert site.both(MODULE, state="absent", name="mine-efs", owner="mine")["changed"] is False
    assert len(site.ec2.describe_security_groups(GroupNames=["mine-efs"])["SecurityGroups"]) == 1


def test_of_two_with_one_name_both_go_or_that_of_the_vpc(site: Site) -> None:
    """A site that has moved to another VPC has one in each."""
    removal = {"state": "absent", "name": "mine-efs", "owner": "mine"}
    site.run(MODULE, **wanted(site))
    site.run(MODULE, **wanted(site, subnet_ids=[site.elsewhere()]))
    there = site.ec2.describe_security_groups(GroupNames=["mine-efs"])["SecurityGroups"]
    assert len(there) == 2
    only = site.run(MODULE, check=True, **removal, vpc_id=site.vpc)
    assert len(only["steps"]) == 1 and site.vpc in only["steps"][0]
    assert len(site.both(MODULE, **removal)["steps"]) == 2
    assert site.both(MODULE, **removal)["changed"] is False


def test_lost_answers_and_what_is_not_known_yet(site: Site) -> None:
    site.proxy.lose("ec2:CreateSecurityGroup")
    site.proxy.refuse("ec2:AuthorizeSecurityGroupIngress", "InvalidGroup.NotFound", times=2)
    site.proxy.lose("ec2:AuthorizeSecurityGroupIngress")
    made = site.settles(MODULE, **wanted(site, sources=[site.nodes]))
    assert rules(site, made["security_group"]["id"]) == [f"tcp 2049 {site.nodes}"]


def test_a_rule_that_another_run_adds_meanwhile_takes_no_other_with_it(site: Site) -> None:
    site.proxy.refuse("ec2:AuthorizeSecurityGroupIngress", "InvalidPermission.Duplicate")
    made = site.run(MODULE, **wanted(site, sources=["10.1.0.0/16", "10.2.0.0/16"]))
    assert "msg" not in made and rules(site, made["security_group"]["id"]) == ["tcp 2049 10.2.0.0/16"]


def test_interfaces_that_still_have_it_are_waited_for(site: Site) -> None:
    its_id = site.run(MODULE, **wanted(site))["security_group"]["id"]
    site.proxy.refuse("ec2:DeleteSecurityGroup", "DependencyViolation", times=3)
    assert site.run(MODULE, state="absent", name="mine-efs", owner="mine")["changed"] is True
    its_id = site.run(MODULE, **wanted(site))["security_group"]["id"]
    site.ec2.create_network_interface(SubnetId=site.subnets[0], Groups=[its_id])
    refused = site.run(MODULE, state="absent", name="mine-efs", owner="mine", timeout=1)
    assert refused["code"] == "DependencyViolation" and "network interfaces" in refused["remedy"]


def test_more_than_a_page_and_one_question_for_each(site: Site) -> None:
    options = wanted(site, sources=[site.nodes])
    site.run(MODULE, **options)
    site.proxy.calls.clear()
    assert site.run(MODULE, **options)["changed"] is False
    assert site.proxy.names() == ["ec2:DescribeSubnets", "ec2:DescribeSecurityGroups"]
    site.proxy.gaps.page = 1
    site.proxy.calls.clear()
    assert site.run(MODULE, **options)["changed"] is False
    assert site.proxy.names() == ["ec2:DescribeSubnets"] * 3 + ["ec2:DescribeSecurityGroups"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sources": ["nodes"]}, "The source nodes is neither the id of a security group nor a network"),
        ({"sources": ["10.1.0.5/16"]}, "The source 10.1.0.5/16 is neither"),
        ({"sources": ["0.0.0.0/0"]}, "The source 0.0.0.0/0 is the whole internet"),
        ({"sources": ["::/0"]}, "The source ::/0 is the whole internet"),
        ({"subnet_ids": []}, "The security group mine-efs has no VPC"),
        ({"subnet_ids": ["subnet-00000000000000000"]}, "ec2:DescribeSubnets for the subnets subnet-0000"),
        ({"vpc_id": "", "subnet_ids": "far"}, "The subnets are in several VPCs"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_made(site: Site, more: dict[str, Any], said: str) -> None:
    if more.get("subnet_ids") == "far":
        more = {**more, "subnet_ids": [site.subnets[0], site.elsewhere()]}
    refused = site.run(MODULE, **wanted(site, **more))
    assert said in refused["msg"] and refused["remedy"]
    assert not site.proxy.names(write=True)
