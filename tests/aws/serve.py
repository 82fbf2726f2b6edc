"""AWS as a program, for what is not a test of Python: `python -m tests.aws.serve FILE`, until it is told to stop.

The file says where it is: `url`, `direct` (moto without the proxy), `pid`, and a network of three zones with
`subnets` and `nodes`, a security group.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

import boto3

from tests.aws.server import aws

REGION = "eu-central-1"


def network(direct: str) -> dict[str, object]:
    """A VPC with a subnet in each of three zones, and the security group of the nodes."""
    keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    ec2 = boto3.client("ec2", region_name=REGION, endpoint_url=direct, **keys)
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    made = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.9.{number}.0/24", AvailabilityZone=f"{REGION}{zone}")
        for number, zone in enumerate("abc")
    ]
    subnets = [each["Subnet"]["SubnetId"] for each in made]
    nodes = ec2.create_security_group(GroupName="nodes", Description="Nodes", VpcId=vpc)["GroupId"]
    return {"subnets": subnets, "nodes": nodes}


def main() -> None:
    def stop(_: int, __: FrameType | None) -> None:
        raise SystemExit

    signal.signal(signal.SIGTERM, stop)
    with aws() as (proxy, direct):
        proxy.gaps.creating = proxy.gaps.deleting = 1
        said = {"url": proxy.url, "direct": direct, "pid": os.getpid(), "region": REGION, **network(direct)}
        path = Path(sys.argv[1])
        whole = path.with_suffix(".new")
        whole.write_text(json.dumps(said), encoding="utf-8")
        whole.rename(path)
        signal.pause()


if __name__ == "__main__":
    main()
