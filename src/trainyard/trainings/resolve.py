"""Resolution of an element of `workloads_trainings`: one object for site rules, role, module and verdict.

The catalogue entry and the site's settings fill in the rest. Images stay symbolic until they are built, so a training
is resolved before its images exist. All functions are pure.

Parts: the name of a run, from its description, its code folder or its workload; the resolution.
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import TrainyardError
from ..kube.apply import content_hash
from .catalogue import Catalogue, merged, no_mappings
from .description_checks import NAME_LENGTH, ROLE, TRAINING, Fault, fault, nearest
from .roles import ROLES, TOPOLOGIES
from .site_images import IMPORT, Defaults, completed, image_of, image_places, tensorboard_of, with_source
from .spec import VARIABLE

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


SHELL = "shell"
"""Key of a role: a line for `/bin/sh -c`, instead of a command."""
OF_ROLES = (*(key for key in ROLE if key not in ("name", "replicas", "entrypoint")), SHELL)
"""Keys that apply to all roles if they are given at the top level."""
_OF_SHELLS = ("&&", "||", "|", ";", "&", ">", ">>", "<", "2>", "2>&1", ">&2", "&>")
"""Words that have a meaning only for a shell."""
_BUILTINS = ("cd", "export", "source", ".", "set", "ulimit", "eval")
"""Commands of a shell that are no programs."""
_VARIABLE = re.compile(r"(?<!\$)\$(?:\{[A-Za-z_]|[A-Za-z_])")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_MADE = ("name", "named", "program", "description_hash", "roles", "flags")
"""Keys of a complete description that are derived, and not copied from the site's element."""
WAIT = "wait"
"""Key of an element: whether site.yml follows its run to the end. It is no part of what the run does."""
OF_RUN = ("run", WAIT, *(key for key in TRAINING if key not in _MADE))
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


@dataclass(frozen=True)
class Resolved:
    """A training of a site.

    :param description: all that its element and its catalogue entry determine. Images are mappings with `repository`
        and `artefact`, and code may be a mapping with `folder`; `bound` replaces both by references.
    :param code: its code folder, once for each command that runs in it: `run`; `folder` as the training names it, below
        `~` or relative to Ansible's working directory; `path`, absolute; `command`.
    :param wait: whether site.yml follows the run to its end.
    """

    description: Mapping[str, Any]
    code: Sequence[Mapping[str, Any]]
    wait: bool = True

    @property
    def images(self) -> list[dict[str, str]]:
        """Return repository and artefact of each image that the project builds for this training."""
        values = [container.get(key) for container, key in image_places(self.description)]
        made = [value for value in values if isinstance(value, Mapping) and value.keys() >= set(_IMAGE)]
        return list({str(each["artefact"]): {key: str(each[key]) for key in _IMAGE} for each in made}.values())

    def bound(self, site: Defaults) -> dict[str, Any]:
        """Return the description for the module `training`: with the site's settings, and references of built images.

        :raises TrainyardError: an image is not built.
        """
        description = copy.deepcopy(dict(self.description))
        logs = dict(site.logs)
        if logs.get("path"):
            logs["path"] = f"{logs['path']}/{description['name']}"
        description["logs"] = {**logs, **(description.get("logs") or {})}
        data = description.get("data")
        if isinstance(data, dict) and data.get("source") == IMPORT:
            del data["source"]
            data |= site.archive(str(data["url"] or ""))
        for role in description["roles"]:
            image = role.get("image")
            cuda = site.cuda.get(str(image.get("artefact"))) if isinstance(image, Mapping) else None
            if cuda and not role.get("cuda"):
                role["cuda"] = cuda
        for container, key in image_places(description):
            image = container.get(key)
            if not image or not isinstance(image, Mapping):
                continue
            folder = image.get("folder") if key == "code" else None
            container[key] = site.packed(str(folder), description["name"]) if folder else site.image(image)
        return description

    @property
    def expected(self) -> dict[str, Any]:
        """Return the properties that a verdict compares with the record of the run."""
        found = {key: self.description[key] for key in _EXPECTED if key in self.description}
        # A program without these flags has no bound, and no own limit for a step.
        flags = self.description["flags"]
        return found | {key: flags[key] for key in _EXPECTED_FLAGS if flags.get(key) is not None}


_IMAGE = ("repository", "artefact")
_EXPECTED = ("name", "namespace", "topology", "start_timeout", "description_hash")
_EXPECTED_FLAGS = ("train_steps", "accuracy_bound", "stall_timeout")


def resolve_all(
    wanted: Sequence[Mapping[str, Any]], catalogue: Catalogue, *, require_gpu: bool = True
) -> list[Resolved]:
    """Return the trainings of a site.

    :param require_gpu: the site's setting, see `resolve`.
    :raises TrainyardError: a workload or key is unknown, or two runs have the same name.
    """
    found = []
    for each in wanted:
        entry = entry_of(each, catalogue)
        if faults := strange_keys(each, entry):
            raise TrainyardError(f"{VARIABLE}: {run_name(each)}: {'; '.join(map(str, faults))}")
        found.append(resolve(each, entry, require_gpu=require_gpu))
    for name in twice(wanted):
        raise TrainyardError(f"{VARIABLE}: two runs have the name {name}.", remedy="Set another run for one of them.")
    return found


def resolve(wanted: Mapping[str, Any], entry: Mapping[str, Any], *, require_gpu: bool = True) -> Resolved:
    """Return one training.

    :param wanted: one element of `workloads_trainings`, with known keys only.
    :param entry: the catalogue entry of its workload.
    :param require_gpu: whether pods with GPUs must compute on them; else they run the image without CUDA, on the CPU.
    :raises TrainyardError: a command has an unclosed quote, or a value that must be a mapping is none.
    """
    _refuse_two_commands(wanted)
    description = _described(wanted, entry, require_gpu)
    code = _code_folders(description)
    # It depends neither on the site nor on the built images. So a verdict, which does not know them, can compare it
    # with the record.
    hashed = description if require_gpu else _described(wanted, entry, require_gpu=True)
    anywhere = Resolved(hashed, ()).bound(Defaults(known=False))
    identity: dict[str, Any] = {"description_hash": content_hash(_plain(anywhere))}
    if code and wanted.get("workload") == OWN:
        # Folder and commands distinguish users' programs of the same name.
        program = content_hash([[each["path"], each["command"]] for each in code])
        identity |= {"program": program, "named": bool(wanted.get("run"))}
    return Resolved({**description, **identity}, code, _waits(wanted))


def _waits(wanted: Mapping[str, Any]) -> bool:
    wait = wanted.get(WAIT, True)
    if not isinstance(wait, bool):
        raise TrainyardError(f"{WAIT} of {run_name(wanted)} is not true or false.", remedy="Set it to true or false.")
    return wait


def _refuse_two_commands(wanted: Mapping[str, Any]) -> None:
    for place, each in (("", wanted), *((f"{name}.", wanted[name]) for name in ROLES if name in wanted)):
        if isinstance(each, Mapping) and each.get("command") and each.get(SHELL):
            raise TrainyardError(f"{place}command and {place}{SHELL} are both set.", remedy="Set one of them.")


def _described(wanted: Mapping[str, Any], entry: Mapping[str, Any], require_gpu: bool) -> dict[str, Any]:
    given = _with_flags(wanted, entry)
    both, described = _split(_merged(given, entry))
    both = {key: value for key, value in both.items() if key not in ("description", "kind", "run", WAIT)}
    flags = dict(both.get("flags") or {})
    if REQUIRE_GPU in flags and not require_gpu and REQUIRE_GPU not in (given.get("flags") or {}):
        flags[REQUIRE_GPU] = False
    for key in flags.keys() & TRAINING.keys():
        # The program and its follower must use the same limit.
        flags[key] = both[key] = both.get(key, flags[key])
    return {
        "namespace": TRAINING["namespace"]["default"],
        **both,
        "name": run_name(wanted),
        "flags": flags,
        "roles": [_role(name, each, require_gpu) for name, each in described.items()],
        **({"data": completed(both["data"])} if both.get("data") else {}),
        "tensorboard": tensorboard_of(both),
    }


def _split(both: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Split a description into the keys of the run and those of each role, with the common keys applied."""
    rest = dict(both)
    common = {key: rest.pop(key) for key in OF_ROLES if key in rest}
    topology = TOPOLOGIES.get(rest.get("topology", "parameter_server"))
    names = [name for name in ROLES if name in rest or (topology and name in topology.roles)]
    return rest, {name: merged(common, rest.pop(name, None) or {}) for name in names}


def _code_folders(description: Mapping[str, Any]) -> list[dict[str, Any]]:
    code = description.get("code")
    folder = code.get("folder") if isinstance(code, Mapping) else None
    if not folder:
        return []
    commands = {
        tuple(map(str, each.get("command") or ())) for each in description["roles"] if each.get("replicas") != 0
    }
    path = os.path.abspath(os.path.expanduser(str(folder)))
    run = description["name"]
    return [{"run": run, "folder": str(folder), "path": path, "command": list(each)} for each in sorted(commands)]


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


def _role(name: str, described: Mapping[str, Any], require_gpu: bool) -> dict[str, Any]:
    role = {"name": name, **described}
    for key in ("command", "args"):
        if isinstance(role.get(key), str):
            role[key] = words_of(role[key], program=key == "command")
    if line := role.pop(SHELL, None):
        role["command"] = ["/bin/sh", "-c", str(line)]
    if "image" in role:
        role["image"] = image_of(role, require_gpu)
    if not role.get("command") and isinstance(role.get("image"), str):
        role["entrypoint"] = True
    return role


def words_of(command: str, *, program: bool = True) -> list[str]:
    """Split a command into words, as a shell does.

    :param program: whether the first word is a program; otherwise all are arguments.
    :raises TrainyardError: a quote is not closed, or a word has a meaning only for a shell, which does not run it.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise TrainyardError(f"The command {command!r} cannot be read: {error}.", remedy="Close the quote.") from error
    if wrong := _of_shell(words, program):
        raise TrainyardError(
            f"The command {command!r} has {wrong!r}, which only a shell understands, and no shell runs it.",
            remedy="Set shell instead of command, or give the command as a list of words.",
        )
    return words


def _of_shell(words: Sequence[str], program: bool) -> str:
    """Return the first word that only a shell understands; empty without one, or if the command is a shell's."""
    if program and words:
        if os.path.basename(words[0]) in ("sh", "bash", "dash"):
            return ""
        if words[0] in _BUILTINS or _ASSIGNMENT.fullmatch(words[0]):
            return words[0]
    return next((word for word in words if word in _OF_SHELLS or word.endswith(";") or _VARIABLE.search(word)), "")
