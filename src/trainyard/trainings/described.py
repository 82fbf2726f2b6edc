"""Expansion of an element of `workloads_trainings` to the complete description of a training.

The catalogue entry and the site's defaults fill in the rest. The functions are pure. The role, the site rules and the
verdict share them.

Parts: the name of a run, from its description, its code folder or its workload; the expansion.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.errors import TrainyardError
from ..kube.apply import content_hash
from .catalogue import Catalogue, merged, no_mappings
from .description_checks import NAME_LENGTH, ROLE, TRAINING, Fault, fault, nearest
from .roles import ROLES, TOPOLOGIES
from .site_images import (
    IMPORTER,
    TENSORBOARD,
    Defaults,
    completed,
    image_of,
    made,
    shows_files,
    tensorboard_of,
    with_source,
)
from .spec import VARIABLE, parse_training

OWN = "own"
"""The workload for programs of users. Two programs are two runs, each with its own files."""
NAMELESS = "its name has no letter from a to z and no digit, so the run cannot be named after it"
"""The fault of a code folder that gives a run no name."""
_DIGEST_LENGTH = 8


def run_name(wanted: Mapping[str, Any]) -> str:
    """Return the name of a run. If its code folder gives none, return the folder's own, which the checks refuse."""
    if wanted.get("run"):
        return str(wanted["run"])
    if folder := naming_folder(wanted):
        return name_of_folder(folder) or _base(folder)
    return str(wanted.get("workload", "")).replace("_", "-")


def naming_folder(wanted: Mapping[str, Any]) -> str:
    """Return the code folder that names a run; empty if the description names it, or it has no code folder."""
    code = wanted.get("code")
    if wanted.get("run") or wanted.get("workload") != OWN or not isinstance(code, Mapping):
        return ""
    return str(code.get("folder") or "")


def name_of_folder(folder: str) -> str:
    """Return the name of a folder as a valid Kubernetes name; empty if it has no letter from a to z and no digit.

    :param folder: path below `~`, or relative to Ansible's working directory.
    """
    base = _base(folder)
    plain = unicodedata.normalize("NFKD", base).encode("ascii", "ignore").decode().lower()
    name = re.sub("[^a-z0-9]+", "-", plain).strip("-")
    if name[:1].isdigit():
        name = f"{OWN}-{name}"
    if len(name) > NAME_LENGTH:
        # The digest distinguishes long names with the same beginning.
        digest = hashlib.sha256(base.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGEST_LENGTH]
        name = f"{name[: NAME_LENGTH - _DIGEST_LENGTH - 1].rstrip('-')}-{digest}"
    return name


def twice(wanted: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names that more than one run has."""
    names = [run_name(each) for each in wanted]
    return (name for name in dict.fromkeys(names) if names.count(name) > 1)


def _base(folder: str) -> str:
    return os.path.basename(os.path.abspath(os.path.expanduser(folder)))


OF_ROLES = tuple(key for key in ROLE if key not in ("name", "replicas"))
"""Keys that apply to all roles if they are given at the top level."""
_MADE = ("name", "named", "program", "description_hash", "roles", "flags")
"""Keys of a complete description that are derived, and not copied from the site's element."""
OF_RUN = ("run", *(key for key in TRAINING if key not in _MADE))
REQUIRE_GPU = "require_gpu"
"""Flag of a workload: its processes must compute on the GPUs of their pods."""
INSTEAD = {"name": "run", "data_image": "data", "strategy": "topology", "ps_replicas": "ps"}
"""Common keys of other projects -> ours."""


def strange_keys(wanted: Mapping[str, Any], entry: Mapping[str, Any]) -> list[Fault]:
    """Find unknown keys, with the most similar known key, and keys that must be mappings."""
    flags = list(entry.get("flags") or {})
    known = [*OF_RUN, *OF_ROLES, *ROLES, *flags, "flags"]
    found = []
    for key in wanted:
        if key in known:
            continue
        near = INSTEAD.get(str(key)) or nearest(str(key), known)
        want = f"a training of this workload has no such key; known keys are {', '.join(sorted(set(known)))}"
        value = wanted[key]
        found.append(
            Fault(str(key), "is set", want, near)
            if isinstance(value, Mapping | list)
            else fault(key, value, want, near)
        )
    return [*found, *no_mappings(wanted)]


def complete(wanted: Mapping[str, Any], entry: Mapping[str, Any], site: Defaults) -> dict[str, Any]:
    """Return the complete description of one training, as the module `training` takes it.

    :param wanted: one element of `workloads_trainings`, with known keys only.
    :param entry: the catalogue entry of its workload.
    :raises TrainyardError: an image is not built, or a command has an unclosed quote.
    """
    said = _with_flags(wanted, entry)
    both, described = _split(_merged(said, entry))
    both = {key: value for key, value in both.items() if key not in ("description", "kind", "run")}
    flags = dict(both.get("flags") or {})
    if REQUIRE_GPU in flags and not site.require_gpu and REQUIRE_GPU not in (said.get("flags") or {}):
        flags[REQUIRE_GPU] = False
    for key in flags.keys() & TRAINING.keys():
        # The program and its follower must use the same limit.
        flags[key] = both[key] = both.get(key, flags[key])
    roles = [_role(name, each, site) for name, each in described.items()]
    name = run_name(wanted)
    logs = dict(site.logs)
    if logs.get("path"):
        logs["path"] = f"{logs['path']}/{name}"
    return {
        "namespace": TRAINING["namespace"]["default"],
        **both,
        "name": name,
        "flags": flags,
        "roles": roles,
        "logs": {**logs, **(both.get("logs") or {})},
        **({"data": completed(both["data"], site)} if both.get("data") else {}),
        **({"code": _code(both["code"], name, site)} if both.get("code") else {}),
        "tensorboard": tensorboard_of(both, site),
    }


def _split(both: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Split a description into the keys of the run and those of each role, with the common keys applied."""
    rest = dict(both)
    common = {key: rest.pop(key) for key in OF_ROLES if key in rest}
    topology = TOPOLOGIES.get(rest.get("topology", "parameter_server"))
    names = [name for name in ROLES if name in rest or (topology and name in topology.roles)]
    return rest, {name: merged(common, rest.pop(name, None) or {}) for name in names}


def _code(code: Any, run: str, site: Defaults) -> Any:
    folder = code.get("folder") if isinstance(code, Mapping) else None
    return site.packed(str(folder), run) if folder else site.reference(code)


def images(wanted: Mapping[str, Any], entry: Mapping[str, Any], *, require_gpu: bool = True) -> list[dict[str, str]]:
    """Return repository and artefact of each image of a training that the project builds.

    :param require_gpu: the site's setting.
    """
    rest, roles = _split(_merged(wanted, entry))
    data = rest.get("data")
    if isinstance(data, Mapping) and data.get("source") == "import":
        rest["data"] = IMPORTER
    elif isinstance(data, Mapping) and data.get("source") == "claim":
        rest["data"] = {}
    shown = {"tensorboard": TENSORBOARD} if shows_files(rest) else {}
    return made([*({**role, "image": image_of(role, require_gpu)} for role in roles.values()), {**rest, **shown}])


def code_folders(wanted: Mapping[str, Any], entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the code folder of a training, once for each command that runs in it.

    :return: `run`; `folder` as the training names it, below `~` or relative to Ansible's working directory; `path`,
        absolute; `command`.
    """
    code = _merged(wanted, entry).get("code")
    folder = code.get("folder") if isinstance(code, Mapping) else None
    if not folder:
        return []
    roles = complete(wanted, entry, Defaults(known=False))["roles"]
    commands = {tuple(map(str, role.get("command") or ())) for role in roles if role.get("replicas") != 0}
    return [
        {
            "run": run_name(wanted),
            "folder": str(folder),
            "path": os.path.abspath(os.path.expanduser(str(folder))),
            "command": list(command),
        }
        for command in sorted(commands)
    ]


def entry_of(wanted: Mapping[str, Any], catalogue: Catalogue) -> Mapping[str, Any]:
    """Return the catalogue entry of a training's workload.

    :raises TrainyardError: the catalogue has no such entry.
    """
    name = str(wanted.get("workload"))
    if name not in catalogue:
        near = nearest(name, list(catalogue))
        hint = f"Did you mean {near}? " if near else ""
        raise TrainyardError(
            f"{VARIABLE}: the workload {name!r} is not in the catalogue.",
            remedy=f"{hint}Use one of: {', '.join(sorted(catalogue))}.",
        )
    return catalogue[name]


def complete_all(wanted: Sequence[Mapping[str, Any]], catalogue: Catalogue, site: Defaults) -> list[dict[str, Any]]:
    """Return the complete descriptions of all trainings of a site.

    :raises TrainyardError: a workload or key is unknown, or two runs have the same name.
    """
    found = []
    for each in wanted:
        entry = entry_of(each, catalogue)
        if faults := strange_keys(each, entry):
            raise TrainyardError(f"{VARIABLE}: {run_name(each)}: {'; '.join(map(str, faults))}")
        hashes = {"description_hash": description_hash(each, entry), **_program(each, entry)}
        found.append({**complete(each, entry, site), **hashes})
    for each in found:
        parse_training(each)
    for name in twice(wanted):
        raise TrainyardError(f"{VARIABLE}: two runs have the name {name}.", remedy="Set another run for one of them.")
    return found


def description_hash(wanted: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the description of a run by the site and the catalogue.

    It does not depend on the built images. So a verdict, which does not know them, can compare it with the record.
    """
    return content_hash(_plain(complete(wanted, entry, Defaults(known=False))))


def _program(wanted: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of a user's program, which distinguishes programs of the same name: folder and commands."""
    codes = code_folders(wanted, entry) if wanted.get("workload") == OWN else []
    program = content_hash([[code["path"], code["command"]] for code in codes])
    return {"program": program, "named": bool(wanted.get("run"))} if codes else {}


def _plain(value: Any) -> Any:
    """Convert all values to text and drop None, so that `2` of a call equals `"2"` of an inventory."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _merged(wanted: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the description of a run over its catalogue entry."""
    _refuse_no_mappings(wanted)
    return merged(with_source(with_roles(entry)), with_source(with_roles(wanted)))


def _refuse_no_mappings(wanted: Mapping[str, Any]) -> None:
    if faults := list(no_mappings(wanted)):
        raise TrainyardError(f"{VARIABLE}: {run_name(wanted)}: {'; '.join(map(str, faults))}")


def _with_flags(wanted: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Move top-level keys that are flags of the workload into `flags`."""
    _refuse_no_mappings(wanted)
    known = entry.get("flags") or {}
    given = {key: wanted[key] for key in wanted if key in known and key not in TRAINING}
    rest = {key: value for key, value in wanted.items() if key not in given}
    flags = {**(wanted.get("flags") or {}), **given}
    return {**rest, **({"flags": flags} if flags else {})}


def with_roles(described: Mapping[str, Any]) -> dict[str, Any]:
    """Replace a number given for a role by a mapping with that number of replicas."""
    return {
        key: {"replicas": value} if key in ROLES and isinstance(value, int | str) else value
        for key, value in described.items()
    }


def _role(name: str, described: Mapping[str, Any], site: Defaults) -> dict[str, Any]:
    role = {"name": name, **described}
    if isinstance(role.get("command"), str):
        role["command"] = _words(role["command"])
    if "image" in role:
        image = image_of(role, site.require_gpu)
        role["image"] = site.reference(image)
        cuda = site.cuda.get(str(image.get("artefact"))) if isinstance(image, Mapping) else None
        if cuda and not role.get("cuda"):
            role["cuda"] = cuda
    if isinstance(role.get("volumes"), list):
        role["volumes"] = [
            {**each, **({"image": site.reference(each["image"])} if each.get("image") else {})}
            if isinstance(each, Mapping)
            else each
            for each in role["volumes"]
        ]
    return role


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise TrainyardError(f"The command {command!r} cannot be read: {error}.", remedy="Close the quote.") from error
