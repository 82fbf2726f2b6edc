"""Rules about trainings: what TensorFlow, the job's back end or the accelerators cannot do is refused before the start.

What a knob may be stands in `training_spec`, which software works together in the workloads' own `lib.compat`; the
rules here see both before a cluster exists, and report everything that is wrong at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.training.spec import FLAG_CHECKS, ROLES, parse_training

from lib import compat
from lib.errors import InputError

from .model import Problem, Setting, Site, problem

GPU = "nvidia.com/gpu"
PARAMETER_SERVER, MULTI_WORKER = compat.STRATEGIES
TENSORFLOW_REPOSITORY = "tensorflow"
"""Image repository whose tag is a version of TensorFlow."""

FOREIGN_NAMESPACES = frozenset({"default", "calico-system", "calico-apiserver", "tigera-operator"})
"""Namespaces that others own, beside the roles' and those that begin with "kube-"."""

_IMAGE = re.compile(rf"(?:^|/){TENSORFLOW_REPOSITORY}:v?(\d+\.\d+[.\d]*)")


@dataclass(frozen=True)
class _Training:
    """What a site wants to run.

    :param entry: the workload's entry of the catalogue, empty for an unknown one.
    :param knobs: the entry's defaults under the site's own values.
    """

    setting: Setting
    entry: Mapping[str, Any]
    knobs: Mapping[str, Any]

    def role(self, name: str) -> Mapping[str, Any]:
        return _mapping(self.knobs.get(name))

    def limits(self, name: str) -> Mapping[str, Any]:
        return _mapping(self.role(name).get("limits"))

    def refuse(self, key: str, value: Any, fault: str, remedy: str) -> Problem:
        return problem(self.setting, fault, remedy, key=f".{key}", value=value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two mappings as Ansible's recursive `combine` joins them."""
    both = {key: _merged(below[key], above[key]) for key in below if key in above and _nested(below[key], above[key])}
    return {**below, **above, **both}


def _nested(one: Any, other: Any) -> bool:
    return isinstance(one, Mapping) and isinstance(other, Mapping)


def _trainings(site: Site) -> Iterator[_Training]:
    for setting in site.values("workloads_training"):
        if isinstance(setting.value, Mapping):
            entry = _mapping(site.catalogue.get(str(setting.value.get("workload"))))
            yield _Training(setting, entry, _merged(_mapping(entry.get("training")), setting.value))


def unknown_workload(site: Site) -> Iterator[Problem]:
    """A workload that the catalogue does not have."""
    for training in _trainings(site):
        name = training.setting.value.get("workload")
        if name not in site.catalogue:
            remedy = f"Use one of: {', '.join(sorted(site.catalogue))}."
            yield training.refuse("workload", name, "not in the catalogue of workloads", remedy)


def replicas(site: Site) -> Iterator[Problem]:
    """Numbers of pods that no strategy can start with."""
    for training in _trainings(site):
        strategy = training.knobs.get("strategy", PARAMETER_SERVER)
        chief = training.role("chief").get("replicas", 1)
        if chief != 1:
            yield training.refuse("chief.replicas", chief, "a training has exactly one chief", "Use 1.")
        for role in ("ps", "worker"):
            count = training.role(role).get("replicas", 1)
            if isinstance(count, int) and count < 1:
                fault = f"a training with the strategy {strategy} needs at least one {role}"
                yield training.refuse(f"{role}.replicas", count, fault, "Use 1 or more.")


def knobs(site: Site) -> Iterator[Problem]:
    """Values out of range, and a bound that is never looked at."""
    for training in _trainings(site):
        bad = {name for name, (good, _) in FLAG_CHECKS.items() if not good(training.knobs.get(name, 1))}
        for name in sorted(bad & training.knobs.keys()):
            want = FLAG_CHECKS[name][1]
            yield training.refuse(name, training.knobs[name], "not a value that it can have", f"Write {want}.")
        bound, steps = training.knobs.get("accuracy_bound"), training.knobs.get("train_steps")
        if bound and "accuracy_bound" not in bad and steps == 0:
            fault = "a training without an end (train_steps 0) is never measured against it"
            remedy = "Set a number of train_steps, or accuracy_bound to 0."
            yield training.refuse("accuracy_bound", bound, fault, remedy)


def limits(site: Site) -> Iterator[Problem]:
    """Limits without cpu or memory: the namespace of the trainings refuses such a container."""
    for training in _trainings(site):
        for role in ROLES:
            given = training.limits(role)
            for resource, example in (("cpu", "1"), ("memory", "1Gi")):
                if given and not given.get(resource):
                    remedy = f'Add {resource}, for example "{example}".'
                    yield training.refuse(f"{role}.limits", dict(given), f"{resource} is missing", remedy)


def gpu_without_driver(site: Site) -> Iterator[Problem]:
    """A GPU asked for on a site where no host gets a driver: the pod would stay Pending for ever."""
    if any(True for _ in site.values("nvidia_driver_version")):
        return
    for training in _trainings(site):
        for role in ROLES:
            count = training.limits(role).get(GPU)
            if count and str(count) != "0":
                fault = "no host of this site has a GPU (nvidia_driver_version is set nowhere)"
                remedy = "Set nvidia_driver_version for the GPU nodes, or leave the limit out."
                yield training.refuse(f"{role}.limits.{GPU}", count, fault, remedy)


def combination(site: Site) -> Iterator[Problem]:
    """Strategy, Keras, loop and versions that fail together, with the nearest that work."""
    drivers = [str(setting.value) for setting in site.values("nvidia_driver_version")]
    for training in _trainings(site):
        wanted = {key: str(training.knobs.get(key, default)) for key, default in _COMBINATION.items()}
        wanted["tensorflow"] = _tensorflow(training, site)
        for driver in drivers or [""]:
            try:
                compat.check(compat.Combination(**wanted, driver=driver))
            except InputError as error:
                shown = ", ".join(f"{key} {value}" for key, value in {**wanted, "driver": driver}.items() if value)
                yield problem(training.setting, error.message.removesuffix("."), error.remedy, value=shown)


_COMBINATION = {"strategy": PARAMETER_SERVER, "keras": "none", "loop": "custom", "python": ""}
"""What a workload is made of where its entry does not say: raw variables and a loop of its own."""


def _tensorflow(training: _Training, site: Site) -> str:
    """The version of TensorFlow in the image; empty for an image of the user's own."""
    if "image" in training.knobs:
        found = _IMAGE.search(str(training.knobs["image"]))
        return found[1] if found else ""
    image = _mapping(training.entry.get("image"))
    if image.get("repository") != TENSORFLOW_REPOSITORY:
        return ""
    return (site.versions or {}).get(str(image.get("artefact")), "")


def reserved_namespace(site: Site) -> Iterator[Problem]:
    """A namespace of others: the run's policies would cut its pods off the network."""
    for training in _trainings(site):
        namespace = str(training.knobs.get("namespace", ""))
        if namespace in FOREIGN_NAMESPACES | site.namespaces or namespace.startswith("kube-"):
            fault = "a namespace of the cluster itself, which the policies of a training would cut off"
            yield training.refuse("namespace", namespace, fault, 'Use one of its own, for example "trainings".')


def logs_folder(site: Site) -> Iterator[Problem]:
    """A folder for the chief's files outside the one that is kept for them: it is given to the training's user."""
    for training in _trainings(site):
        path = _mapping(training.setting.value.get("logs")).get("path")
        for base in site.values("workloads_logs_path") if path else ():
            if not PurePosixPath(str(path)).is_relative_to(PurePosixPath(str(base.value))) or ".." in str(path).split(
                "/"
            ):
                fault = f'outside workloads_logs_path "{base.value}", and would be given to the user of the training'
                yield training.refuse("logs.path", path, fault, "Change workloads_logs_path instead.")


def data_model(site: Site) -> Iterator[Problem]:
    """Whatever else the module that runs the training would refuse, where the rules above have found nothing."""
    complained = {found.hosts for rule in (unknown_workload, replicas, knobs, limits) for found in rule(site)}
    for training in _trainings(site):
        if training.setting.hosts in complained:
            continue
        # The role adds these two: the image from the lock, the folder from variables of its own.
        added = {"image": "image", "logs": {}}
        try:
            parse_training({**added, **training.knobs})
        except TrainyardError as error:
            fault = error.message.removesuffix(".")
            # The fault names key and value; the whole of it may hold an environment with secrets.
            yield problem(training.setting, fault, error.remedy, value=f"workload {training.knobs.get('workload')}")


TRAINING_RULES = (
    unknown_workload,
    replicas,
    knobs,
    limits,
    gpu_without_driver,
    combination,
    reserved_namespace,
    logs_folder,
    data_model,
)
