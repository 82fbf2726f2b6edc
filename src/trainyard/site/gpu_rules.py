"""Rules about hosts with GPUs, and about trainings that request GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from engine import compat
from engine.errors import InputError

from ..trainings.resolve import REQUIRE_GPU
from ..trainings.site_images import NO_DIGEST, asked_gpus
from .site_model import Problem, Site, named, problem
from .training_rules import trainings

TOOLKIT_MINIMUM = (1, 20, 0)
"""The same as in the role. Older container toolkits do not create `/dev/nvidia-uvm` at boot, and many let a container
escape to its host (CVE-2025-23266, CVE-2025-23359)."""


def gpu_nodes_are_hosts_of_the_site(site: Site) -> Iterator[Problem]:
    """Refuse a host with GPUs that is neither a node nor a builder, as nothing would configure it."""
    known = {*site.groups.get("cluster", ()), *site.groups.get("builders", ())}
    for host in site.groups.get("gpu_nodes", ()):
        if host not in known:
            yield Problem(
                f"host {host}",
                "in gpu_nodes, but in no other group",
                "GPUs are offered by nodes, and used by builders",
                "Put it into workers or builders, too.",
            )


def sharing_is_between_several(site: Site) -> Iterator[Problem]:
    """Refuse time-slicing with fewer than two pods on a GPU."""
    for setting in site.values("device_plugin_replicas"):
        if isinstance(setting.value, int) and setting.value < 2:
            remedy = "Use 2 or more, or leave device_plugin_sharing at none."
            yield problem(setting, "at least 2 pods share a GPU", remedy)


def toolkit_is_sound(site: Site) -> Iterator[Problem]:
    """Refuse a container toolkit without reliable GPUs after a boot, or with known vulnerabilities."""
    for setting in site.values("nvidia_runtime_version"):
        numbers = tuple(int(part) for part in str(setting.value).lstrip("v").split("-")[0].split(".") if part.isdigit())
        if numbers and numbers < TOOLKIT_MINIMUM:
            minimum = ".".join(map(str, TOOLKIT_MINIMUM))
            fault = f"toolkits before {minimum} may not create CUDA's device node at boot, or are vulnerable"
            yield problem(setting, fault, "Remove it to use the version of the lock.")


def version_is_of_its_branch(site: Site) -> Iterator[Problem]:
    """Refuse a version of the driver outside its branch, as no package would match."""
    branches = list(site.values("nvidia_driver_branch"))
    for setting in site.values("nvidia_driver_version"):
        hosts = set(setting.hosts)
        own = [each for each in branches if not each.hosts or not hosts or hosts & set(each.hosts)]
        for branch in own:
            if setting.value and not str(setting.value).startswith(f"{branch.value}."):
                fault = f"not a version of the branch {branch.value} (nvidia_driver_branch)"
                yield problem(setting, fault, "Set both, or remove the version.")


def mirror_has_no_driver(site: Site) -> Iterator[Problem]:
    """Refuse NVIDIA's packages on a site whose hosts install packages only from the mirror."""
    mirrored = any(setting.value == "mirror" for setting in site.values("supply"))
    sources = list(site.values("base_apt_sources"))
    for setting in site.values("nvidia_driver_source"):
        if setting.value != "preinstalled" and mirrored and not sources:
            fault = "a mirror (supply) serves no driver"
            remedy = "Install it yourself (preinstalled), or name a source that has it in base_apt_sources."
            yield problem(setting, fault, remedy)


def gpu_without_node(site: Site) -> Iterator[Problem]:
    """Refuse a request for a GPU on a site without one, as the pod would stay Pending."""
    if set(site.groups.get("gpu_nodes", ())) & set(site.groups.get("cluster", ())):
        return
    for training in trainings(site):
        if count := training.gpus():
            fault = "no node of this site has a GPU (no host of the cluster is in gpu_nodes)"
            yield training.refuse("gpus", count, fault, "Put the hosts with GPUs into gpu_nodes, or request none.")


def more_gpus_than_a_node_has(site: Site) -> Iterator[Problem]:
    """Refuse a pod that requests more GPUs than any node offers, if the inventory has the number of each node."""
    nodes = set(site.groups.get("gpu_nodes", ())) & set(site.groups.get("cluster", ()))
    counts = {
        host: setting.value
        for setting in site.values("device_plugin_gpus")
        for host in setting.hosts
        if isinstance(setting.value, int)
    }
    shared = {
        host
        for setting in site.values("device_plugin_sharing")
        for host in setting.hosts
        if setting.value == "time_slicing"
    }
    # With time-slicing a pod gets one share, independent of the number of GPUs.
    has = {host: 1 if host in shared else counts[host] for host in nodes if host in shared or host in counts}
    if not nodes or has.keys() < nodes:
        return
    largest = max(sorted(has), key=has.__getitem__)
    why = " share of a GPU for a pod (device_plugin_sharing)" if largest in shared else ""
    for training in trainings(site):
        if (count := training.gpus()) > has[largest]:
            fault = f"no node has as many; the largest, {largest}, has {has[largest]}{why}"
            yield training.refuse("gpus", count, fault, f"Request {has[largest]} or fewer.")


def image_without_cuda(site: Site) -> Iterator[Problem]:
    """Refuse one of our images without CUDA if its role requires a GPU, as its pods would fail at the start."""
    for training in trainings(site):
        required = str((training.description.get("flags") or {}).get(REQUIRE_GPU, False)).lower() != "false"
        for role in training.description.get("roles", ()) if required else ():
            image = str(role.get("image"))
            if asked_gpus(role) and image.endswith(NO_DIGEST) and not role.get("cuda"):
                fault = f"it has no CUDA, but {role['name']} has to compute on its GPUs (require_gpu)"
                remedy = "Name an image with CUDA, or set require_gpu to false to compute on the CPU."
                yield training.refuse(f"{role['name']}.image", image.partition("@")[0], fault, remedy)


def driver_too_old_for_an_image(site: Site) -> Iterator[Problem]:
    """Refuse an image with CUDA for a role with GPUs if the driver in the inventory is too old for it."""
    for training in trainings(site):
        cuda = {str(role["cuda"]) for role in training.description.get("roles", ()) if _uses_cuda(role)}
        for version, setting in product(sorted(cuda), site.values("nvidia_driver_branch")):
            hosts = [host for host in setting.hosts if host in site.groups.get("gpu_nodes", ())]
            if setting.hosts and not hosts:
                continue
            if why := compat.old_driver(version, str(setting.value)):
                where = f" (nvidia_driver_branch of {named(hosts)})" if hosts else ""
                floor = compat.oldest_driver(version)
                remedy = f"Set nvidia_driver_branch to {floor.partition('.')[0]} or newer, or use an older image."
                yield training.refuse("cuda", version, f"{why.removesuffix('.')}{where}", remedy)


def _uses_cuda(role: Mapping[str, Any]) -> bool:
    return bool(asked_gpus(role) and str(role.get("cuda") or "")[:1].isdecimal())


def old_driver(site: Site) -> Iterator[Problem]:
    """Refuse a driver that is too old for TensorFlow's CUDA."""
    if not site.groups.get("gpu_nodes"):
        return
    for setting in site.values("nvidia_driver_branch"):
        try:
            compat.check(compat.Combination(compat.STRATEGIES[0], "custom", "none", driver=str(setting.value)))
        except InputError as error:
            yield problem(setting, error.message.removesuffix("."), error.remedy)


GPU_RULES = (
    gpu_nodes_are_hosts_of_the_site,
    sharing_is_between_several,
    toolkit_is_sound,
    version_is_of_its_branch,
    mirror_has_no_driver,
    gpu_without_node,
    more_gpus_than_a_node_has,
    image_without_cuda,
    driver_too_old_for_an_image,
    old_driver,
)
