"""Rules about trainings: report all faults at once, before the start.

`trainings.spec` checks a single description. The rules here add the checks that need the whole site.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from ..core.errors import TrainyardError
from ..oci import code_command
from ..oci import code_folder as folder
from ..trainings.description_checks import Fault
from ..trainings.resolve import (
    NAMELESS,
    entry_of,
    name_of_folder,
    naming_folder,
    resolve,
    run_name,
    strange_keys,
)
from ..trainings.site_images import Defaults, asked_gpus
from ..trainings.spec import check
from .site_model import Problem, Setting, Site, problem

FOREIGN_NAMESPACES = frozenset({"default", "calico-system", "calico-apiserver", "tigera-operator"})
"""Namespaces with another owner, in addition to the roles' and to those that begin with "kube-"."""


@dataclass(frozen=True)
class _Training:
    """A training of a site.

    :param key: its place in the setting, such as `[0]`.
    :param wanted: its entry in the setting.
    :param description: its complete description; empty if the workload is unknown.
    :param code: its code folder, once for each command.
    :param faults: faults of the description itself.
    """

    setting: Setting
    key: str
    wanted: Mapping[str, Any]
    description: Mapping[str, Any] = field(default_factory=dict)
    code: Sequence[Mapping[str, Any]] = ()
    faults: tuple[Fault, ...] = ()

    def refuse(self, key: str, value: Any, fault: str, remedy: str) -> Problem:
        return problem(self.setting, fault, remedy, key=f"{self.key}.{key}", value=value)

    def gpus(self) -> int:
        """Return the highest number of GPUs that one of its pods requests."""
        return max(map(asked_gpus, self.description.get("roles", ())), default=0)


def trainings(site: Site) -> Iterator[_Training]:
    """Yield the trainings of a site, from its variables or the role's default."""
    for setting in site.values("workloads_trainings"):
        listed = setting.value if isinstance(setting.value, list) else []
        for index, wanted in enumerate(listed):
            if isinstance(wanted, Mapping):
                yield _described(site, setting, f"[{index}]", wanted)


def _described(site: Site, setting: Setting, key: str, wanted: Mapping[str, Any]) -> _Training:
    training = _Training(setting, key, wanted)
    try:
        entry = entry_of(wanted, site.catalogue)
    except TrainyardError:
        return training
    faults = strange_keys(wanted, entry)
    wrong = {fault.key.partition(".")[0] for fault in faults}
    known = {name: value for name, value in wanted.items() if name not in wrong}
    try:
        resolved = resolve(known, entry, require_gpu=all(each.value for each in site.values("workloads_require_gpu")))
    except TrainyardError as error:
        return replace(training, faults=(*faults, Fault("command", "not a command line", str(error).rstrip("."))))
    description = resolved.bound(_defaults(site))
    return replace(training, description=description, code=resolved.code, faults=(*faults, *check(description)[1]))


def _defaults(site: Site) -> Defaults:
    """Return the role's defaults for all trainings, as far as they are known before an image is built."""
    return Defaults(logs=_logs(site), known=False, archives=_archives(site), cuda=site.cuda)


def _logs(site: Site) -> dict[str, str]:
    """Return the place of the runs' files, as in the role."""
    claims = [str(setting.value) for setting in site.values("workloads_logs_claim") if setting.value]
    if claims or any(setting.value for setting in site.values("storage_backend")):
        return {"claim": claims[0] if claims else "training"}
    return {"node": "node", "path": "/"}


def _archives(site: Site) -> str:
    """Return the address of the site's archives, as in the role; empty without one."""
    named = [str(setting.value) for setting in site.values("workloads_archives") if setting.value]
    served = any(setting.value == "mirror" for setting in site.values("supply"))
    return named[0] if named else "https://mirror/files" if served else ""


def unknown_workload(site: Site) -> Iterator[Problem]:
    """Refuse a workload that the catalogue does not have."""
    for training in trainings(site):
        try:
            entry_of(training.wanted, site.catalogue)
        except TrainyardError as error:
            name = training.wanted.get("workload")
            yield training.refuse("workload", name, "not in the catalogue of workloads", error.remedy)


def two_of_one_name(site: Site) -> Iterator[Problem]:
    """Refuse two runs with the same name, which would overwrite each other's record and files."""
    seen: dict[tuple[int, str], str] = {}
    for training in trainings(site):
        name = run_name(training.wanted)
        first = seen.setdefault((id(training.setting.value), name), training.key)
        if first != training.key:
            yield training.refuse(
                "run",
                name,
                f"workloads_trainings{first} has it, too",
                "Set another name for one of them with the key run.",
            )


def folder_without_a_name(site: Site) -> Iterator[Problem]:
    """Refuse a run without a name if its folder of code does not provide one."""
    for training in trainings(site):
        folder = naming_folder(training.wanted)
        if folder and not name_of_folder(folder):
            yield training.refuse("code", folder, NAMELESS, "Set the name of the run with the key run.")


def description(site: Site) -> Iterator[Problem]:
    """Refuse unknown keys and invalid values."""
    for training in trainings(site):
        for fault in training.faults:
            hint = f"Did you mean {fault.near}?" if fault.near else "Change it."
            # Show only the faulty key, as the whole value may contain an environment with secrets.
            subject = f"variable {training.setting.name}{training.key}.{fault.key}"
            where = training.setting
            yield Problem(subject, fault.shown.removeprefix("is "), fault.want, hint, where.hosts, where.origin)


def code_folder(site: Site) -> Iterator[Problem]:
    """Refuse a folder of code that cannot be packed, or that lacks the file of its command."""
    for training in trainings(site):
        for code in training.code:
            path = Path(code["path"])
            try:
                code_command.check(code["command"], path, folder.read(path))
            except TrainyardError as error:
                fault, remedy = error.message.rstrip("."), error.remedy.rstrip("?.")
                yield training.refuse("code", code["folder"], fault, f"{remedy}{error.remedy[len(remedy) :] or '.'}")


def reserved_namespace(site: Site) -> Iterator[Problem]:
    """Refuse a namespace with another owner. The run's policies would cut its pods off the network."""
    for training in trainings(site):
        namespace = str(training.description.get("namespace", ""))
        if namespace in FOREIGN_NAMESPACES | site.namespaces or namespace.startswith("kube-"):
            fault = "the policies of a training would cut off this namespace of the cluster"
            yield training.refuse("namespace", namespace, fault, 'Use a separate namespace, for example "trainings".')


def logs_folder(site: Site) -> Iterator[Problem]:
    """Refuse a folder outside workloads_logs_path for the run's files, as the training's user becomes its owner."""
    for training in trainings(site):
        logs = training.wanted.get("logs")
        path = logs.get("path") if isinstance(logs, Mapping) else None
        for base in site.values("workloads_logs_path") if path else ():
            if ".." in str(path).split("/") or not PurePosixPath(str(path)).is_relative_to(str(base.value)):
                fault = (
                    f'outside workloads_logs_path "{base.value}", and the user of the training would become its owner'
                )
                yield training.refuse("logs.path", path, fault, "Change workloads_logs_path instead.")


TRAINING_RULES = (
    unknown_workload,
    two_of_one_name,
    folder_without_a_name,
    description,
    code_folder,
    reserved_namespace,
    logs_folder,
)
