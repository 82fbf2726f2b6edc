"""Rules about hosts with GPUs, and about the trainings that ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from lib import compat
from lib.errors import InputError

from ..trainings.described import REQUIRE_GPU
from ..trainings.images import asked_gpus
from ..trainings.references import NO_DIGEST
from .model import Problem, Site, named, problem
from .trainings import trainings

TOOLKIT_MINIMUM = (1, 20, 0)
"""As in the role: older container toolkits do not make `/dev/nvidia-uvm` at a boot, and many let a container onto its
host (CVE-2025-23266, CVE-2025-23359)."""


def gpu_nodes_are_hosts_of_the_site(site: Site) -> Iterator[Problem]:
    """A host with GPUs that is neither a node nor a builder: nothing would be done on it."""
    known = {*site.groups.get("cluster", ()), *site.groups.get("builders", ())}
    for host in site.groups.get("gpu_nodes", ()):
        if host not in known:
            yield Problem(
                f"host {host}",
                "in gpu_nodes, and in no other group",
                "GPUs are offered by nodes, and used by builders",
                "Put it into workers or builders, too.",
            )


def sharing_is_between_several(site: Site) -> Iterator[Problem]:
    """Time-slicing with fewer than two pods on a GPU."""
    for setting in site.values("device_plugin_replicas"):
        if isinstance(setting.value, int) and setting.value < 2:
            remedy = "Use 2 or more, or leave device_plugin_sharing at none."
            yield problem(setting, "sharing is between 2 pods or more", remedy)


def toolkit_is_sound(site: Site) -> Iterator[Problem]:
    """A container toolkit that gives GPUs to chance after a boot, or has known holes."""
    for setting in site.values("nvidia_runtime_version"):
        numbers = tuple(int(part) for part in str(setting.value).lstrip("v").split("-")[0].split(".") if part.isdigit())
        if numbers and numbers < TOOLKIT_MINIMUM:
            minimum = ".".join(map(str, TOOLKIT_MINIMUM))
            fault = f"toolkits before {minimum} leave CUDA's device node to chance, or have holes"
            yield problem(setting, fault, "Leave it out, which gives the lock's.")


def version_is_of_its_branch(site: Site) -> Iterator[Problem]:
    """A version of the driver that its branch does not have: no package would fit."""
    branches = list(site.values("nvidia_driver_branch"))
    for setting in site.values("nvidia_driver_version"):
        hosts = set(setting.hosts)
        own = [each for each in branches if not each.hosts or not hosts or hosts & set(each.hosts)]
        for branch in own:
            if setting.value and not str(setting.value).startswith(f"{branch.value}."):
                fault = f"it is none of the branch {branch.value} (nvidia_driver_branch)"
                yield problem(setting, fault, "Set both, or leave the version out.")


def mirror_has_no_driver(site: Site) -> Iterator[Problem]:
    """NVIDIA's packages on a site whose hosts take theirs from the mirror alone."""
    mirrored = any(setting.value == "mirror" for setting in site.values("supply"))
    sources = list(site.values("base_apt_sources"))
    for setting in site.values("nvidia_driver_source"):
        if setting.value != "preinstalled" and mirrored and not sources:
            fault = "a mirror (supply) serves no driver"
            remedy = "Install it yourself (preinstalled), or name a source that has it in base_apt_sources."
            yield problem(setting, fault, remedy)


def gpu_without_node(site: Site) -> Iterator[Problem]:
    """A GPU asked for on a site where no host has one: the pod would stay Pending for ever."""
    if set(site.groups.get("gpu_nodes", ())) & set(site.groups.get("cluster", ())):
        return
    for training in trainings(site):
        if count := training.gpus():
            fault = "no node of this site has a GPU (no host of the cluster is in gpu_nodes)"
            yield training.refuse("gpus", count, fault, "Put the hosts with GPUs into gpu_nodes, or ask for none.")


def more_gpus_than_a_node_has(site: Site) -> Iterator[Problem]:
    """A pod that asks for more GPUs than it can have of any node, where the inventory says how many that is."""
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
    # A pod gets one share, however many GPUs the node has.
    has = {host: 1 if host in shared else counts[host] for host in nodes if host in shared or host in counts}
    if not nodes or has.keys() < nodes:
        return
    largest = max(sorted(has), key=has.__getitem__)
    why = " share of a GPU for a pod (device_plugin_sharing)" if largest in shared else ""
    for training in trainings(site):
        if (count := training.gpus()) > has[largest]:
            fault = f"no node has as many; the largest, {largest}, has {has[largest]}{why}"
            yield training.refuse("gpus", count, fault, f"Ask for {has[largest]} or fewer.")


def image_without_cuda(site: Site) -> Iterator[Problem]:
    """A GPU that must be used, and an image of ours that cannot: its pods would end at their start."""
    for training in trainings(site):
        required = str((training.description.get("flags") or {}).get(REQUIRE_GPU, False)).lower() != "false"
        for role in training.description.get("roles", ()) if required else ():
            image = str(role.get("image"))
            if asked_gpus(role) and image.endswith(NO_DIGEST) and not role.get("cuda"):
                fault = f"it has no CUDA, and {role['name']} has to compute on its GPUs (require_gpu)"
                remedy = "Name one with CUDA, or set require_gpu to false: the CPU computes then."
                yield training.refuse(f"{role['name']}.image", image.partition("@")[0], fault, remedy)


def driver_too_old_for_an_image(site: Site) -> Iterator[Problem]:
    """CUDA in the image of a role with GPUs that the driver of the inventory is too old for."""
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
    """A driver that TensorFlow's CUDA does not run on."""
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
