"""Rules about quotas and limits of the namespaces of trainings (`workloads_namespaces`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..kube.placement import amount
from .site_model import Problem, Setting, Site, problem
from .training_rules import FOREIGN_NAMESPACES

KEYS = ("limits", "quota")
LIMITS = ("default", "defaultRequest", "max", "min")
"""Fields of a LimitRange for containers. maxLimitRequestRatio is missing, as it would refuse pods of the project."""
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""RFC 1123 label, the form of Kubernetes for namespaces."""
RESOURCE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,250}[A-Za-z0-9])?")
SMALLEST = {"cpu": "20m", "memory": "64Mi"}
"""Smallest requests of pods that the project adds to a run: TensorBoard's CPU, and the memory of a probe."""
LARGEST = {"cpu": "1", "memory": "512Mi"}
"""Highest limits of such pods: those of an import."""


def _namespaces(site: Site) -> Iterator[tuple[Setting, str, Any]]:
    for setting in site.values("workloads_namespaces"):
        for name, bounds in setting.value.items() if isinstance(setting.value, Mapping) else ():
            yield setting, str(name), bounds


def namespace_names(site: Site) -> Iterator[Problem]:
    """Refuse invalid names, and namespaces that are not for trainings."""
    for setting, name, _ in _namespaces(site):
        if not NAME.fullmatch(name):
            remedy = "Use lower case letters, digits and dashes, 63 at most, for example team-a."
            yield problem(setting, "not a valid name of a namespace", remedy, value=name)
        elif name in site.namespaces | FOREIGN_NAMESPACES or name.startswith("kube-"):
            remedy = "Name a namespace of trainings."
            yield problem(setting, "this namespace is not for trainings", remedy, value=name)


def namespace_bounds(site: Site) -> Iterator[Problem]:
    """Refuse unknown keys, invalid amounts, and limits that exclude the project's own pods."""
    for setting, name, bounds in _namespaces(site):
        key = f".{name}"
        if not isinstance(bounds, Mapping):
            yield problem(setting, "not a mapping", "Write {quota: {...}, limits: {...}}.", key=key, value=bounds)
            continue
        for more in sorted(map(str, bounds.keys() - set(KEYS))):
            yield problem(setting, "unknown", f"Use {' or '.join(KEYS)}.", key=key, value=more)
        yield from _amounts(setting, f"{key}.quota", bounds.get("quota"))
        yield from _limits(setting, f"{key}.limits", bounds.get("limits"))


def _limits(setting: Setting, key: str, limits: Any) -> Iterator[Problem]:
    if limits is None:
        return
    if not isinstance(limits, Mapping):
        yield problem(setting, "not a mapping", f"Write {', '.join(LIMITS)}.", key=key, value=limits)
        return
    for field, values in limits.items():
        if field not in LIMITS:
            yield problem(setting, "unknown", f"Use one of {', '.join(LIMITS)}.", key=key, value=field)
            continue
        faults = list(_amounts(setting, f"{key}.{field}", values))
        yield from faults
        if not faults and isinstance(values, Mapping):
            yield from _own_pods(setting, f"{key}.{field}", str(field), values)


def _own_pods(setting: Setting, key: str, field: str, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Refuse a bound that excludes pods that the project adds to a run."""
    known = {"min": SMALLEST, "max": LARGEST}.get(field, {})
    for resource, needed in known.items():
        if resource not in values:
            continue
        given, own = amount(values[resource]), amount(needed)
        if given > own if field == "min" else given < own:
            word = "at most" if field == "min" else "at least"
            fault = f"pods that the project adds to a run have {needed}"
            yield problem(setting, fault, f"Set {word} {needed}.", key=f"{key}.{resource}", value=values[resource])


def _amounts(setting: Setting, key: str, values: Any) -> Iterator[Problem]:
    if values is None:
        return
    if not isinstance(values, Mapping):
        yield problem(setting, "not a mapping", "Write resources with their amounts.", key=key, value=values)
        return
    for resource, quantity in values.items():
        if not isinstance(resource, str) or not RESOURCE.fullmatch(resource):
            yield problem(setting, "not a resource name", "Use for example requests.cpu.", key=key, value=resource)
        elif not _is_amount(quantity):
            remedy = "Use for example 500m, 2 or 1Gi."
            yield problem(setting, "not a quantity", remedy, key=f"{key}.{resource}", value=quantity)


def _is_amount(quantity: Any) -> bool:
    if isinstance(quantity, bool) or not isinstance(quantity, (int, float, str)):
        return False
    try:
        return amount(quantity) >= 0
    except ValueError:
        return False


NAMESPACE_RULES = (namespace_names, namespace_bounds)
