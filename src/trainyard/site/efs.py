"""Rules about the file system of AWS: refuse values that AWS would refuse. Only AWS itself checks zones and VPCs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..aws.access_point import PATH_REMEDY, fault_of
from .model import Problem, Site, problem


def provisioned_throughput(site: Site) -> Iterator[Problem]:
    """Refuse provisioned throughput without its mode, and the mode without an amount."""
    modes = [setting.value for setting in site.values("efs_throughput_mode")]
    amounts = list(site.values("efs_provisioned_mibps"))
    for setting in amounts:
        if modes and "provisioned" not in modes:
            remedy = "Set efs_throughput_mode to provisioned, or remove the amount."
            yield problem(setting, f"efs_throughput_mode is {modes[0]}", remedy)
    for setting in site.values("efs_throughput_mode"):
        if setting.value == "provisioned" and not amounts:
            yield problem(setting, "efs_provisioned_mibps is not set", "Set it to 1 MiB/s or more.")


def access_point_paths(site: Site) -> Iterator[Problem]:
    """Refuse paths that EFS does not accept, and two access points with the same name."""
    for setting in site.values("efs_access_points"):
        names: set[str] = set()
        for index, point in enumerate(setting.value if isinstance(setting.value, list) else ()):
            if not isinstance(point, Mapping):
                continue
            name, path = str(point.get("name", "")), str(point.get("path", "/"))
            if fault := fault_of(path):
                yield problem(setting, fault, PATH_REMEDY, key=f"[{index}].path", value=path)
            if name in names:
                yield problem(
                    setting,
                    "another access point has this name",
                    "Use each name once.",
                    key=f"[{index}].name",
                    value=name,
                )
            names.add(name)


def subnets_once(site: Site) -> Iterator[Problem]:
    """Refuse a subnet that is listed twice."""
    for setting in site.values("efs_subnet_ids"):
        subnets = [str(each) for each in setting.value] if isinstance(setting.value, list) else []
        for each in sorted({each for each in subnets if subnets.count(each) > 1}):
            yield problem(setting, "listed twice", "Name one subnet in each zone.", value=each)


EFS_RULES = (provisioned_throughput, access_point_paths, subnets_once)
