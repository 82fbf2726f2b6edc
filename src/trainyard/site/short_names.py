"""The short names of `train.yml` and `train_stop.yml`: options for one run, checked like variables."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible.parsing.splitter import parse_kv, split_args

from ..core.errors import TrainyardError
from ..kube.placement import amount
from ..trainings.catalogue import Catalogue, merged, no_mappings
from ..trainings.description_checks import FLAG_CHECKS
from ..trainings.log_events import number_in
from ..trainings.resolve import (
    INSTEAD,
    NAMELESS,
    OF_ROLES,
    OF_RUN,
    entry_of,
    name_of_folder,
    naming_folder,
    run_name,
    with_roles,
)
from ..trainings.roles import ROLES, TOPOLOGIES
from ..trainings.site_images import SOURCES
from .run_file import read_run
from .site_model import MAGIC, Problem, Site, quoted
from .variable_rules import fits, typed

TRAIN: Mapping[str, str] = {
    "workload": "str",
    "run": "str",
    "run_file": "str",
    "workers": "int",
    "ps": "int",
    "chief": "int",
    "evaluator": "int",
    "gpus": "int",
    "cpu": "str",
    "memory": "str",
    "shm": "str",
    "image": "str",
    "steps": "int",
    "batch_size": "int",
    "code": "str",
    "command": "str",
    "shell": "str",
    "args": "str",
    "data": "str",
    "data_mount": "str",
    "env": "dict",
    "success": "str",
    "timeout": "int",
    "start_timeout": "int",
    "wait": "bool",
    "resume": "str",
    "replace": "str",
}
"""Short name -> type."""
STOP: Mapping[str, str] = {"run": "str", "confirm": "str", "delete": "bool"}
VERBS = {"train": TRAIN, "train_stop": STOP}

RAW = "_raw_params"
"""Key under which Ansible stores words after `-e` that have no `=`."""

READ = (*MAGIC, "hostvars", "item", "site_dir", "supply")
"""Variables that playbooks and roles read, but no role declares."""

OWN_OPTION = 'Give {} in a separate -e, as in -e command="python worker.py".'

NEAR = 0.7
"""Similarity from which another variable of the call counts as a misspelt short name."""

_LINES = ("command", "shell", "args")
_TO_THE_END = (*_LINES, "success")
"""Short names whose value is the rest of their option."""
_COUNTS = {"workers": "worker", "ps": "ps", "chief": "chief", "evaluator": "evaluator"}
_LIMITS = ("timeout", "start_timeout")
_BOUND = re.compile(r"([A-Za-z_][A-Za-z0-9_./-]*)\s*(>=|<=)\s*(\S+)")
_BOUNDS = {">=": "at_least", "<=": "at_most"}
_FLAGS = {"steps": "train_steps", "batch_size": "batch_size"}
_KINDS = {"int": "a whole number from 0", "bool": "true or false", "str": "a string", "dict": "a mapping"}


@dataclass(frozen=True)
class Call:
    """The request of a call of `train.yml`.

    :param wanted: the training, as an element of `workloads_trainings`.
    :param wait: whether to follow the run to its end.
    :param resume: `auto` or `fresh`.
    :param replace: whether to end a running run of this name with another description.
    """

    wanted: Mapping[str, Any]
    wait: bool = True
    resume: str = "auto"
    replace: bool = False


def of_call(options: Sequence[str], read: Callable[[str], Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the variables of a call, and the variables that Ansible reads from the words of its command.

    A shell removes the quotes of `-e command="python worker.py n=5"`. Then Ansible uses the first word as the value,
    and the rest as further variables. Here an option that begins with `command=`, `shell=`, `args=` or `success=` is
    that to its end.

    :param options: the text of each `-e`.
    :param read: reads an option like Ansible: words, YAML, or `@` and a file.
    """
    found: dict[str, Any] = {}
    words: dict[str, Any] = {}
    for option in filter(None, options):
        name, _, value = option.partition("=")
        if name.strip() in _TO_THE_END and value[:1] not in ("'", '"'):
            found[name.strip()] = value
            words |= {key: each for key, each in parse_kv(value).items() if key != RAW}
        else:
            found |= read(option)
    return found, words


def words_taken(words: Mapping[str, Any], site: Site) -> Iterator[Problem]:
    """Refuse words of the command that Ansible reads as variables, if a playbook or role reads these variables."""
    prefixes = ("ansible_", "_", *(f"{role}_" for role in site.roles))
    for name, value in words.items():
        if name in site.options or name in READ or name.startswith(prefixes):
            fault = "a word of the command, but Ansible sets a variable of this name for the whole run"
            yield _problem(name, value, fault, """Give the command as JSON: -e '{"command": "..."}'.""")


def after_command(options: Sequence[str]) -> Iterator[Problem]:
    """Refuse words after an unquoted command in an option that begins with another name, as they are ambiguous."""
    for option in options:
        if option.lstrip().startswith(("@", "[", "{", *(f"{name}=" for name in _TO_THE_END))):
            continue
        words = split_args(option)
        for place, word in enumerate(words[:-1]):
            name, _, value = word.partition("=")
            if name in _TO_THE_END and value[:1] not in ("'", '"'):
                rest = " ".join(words[place + 1 :])
                remedy = OWN_OPTION.format(f"the {name}")
                yield _problem(name, word.partition("=")[2], f'followed by "{rest}", which may belong to it', remedy)


def strange(given: Mapping[str, Any], verb: str, site: Site) -> Iterator[Problem]:
    """Refuse variables of the call that are probably misspelt short names."""
    names = VERBS[verb]
    prefixes = tuple(f"{role}_" for role in site.roles)
    of_trainings = {*INSTEAD, *OF_RUN, *OF_ROLES, *ROLES, *FLAG_CHECKS}
    if words := given.get(RAW):
        remedy = OWN_OPTION.format("a value of several words")
        yield _problem(words.split()[0], words, "not a name with a value", remedy)
    for name, value in given.items():
        if name in names or name in site.options or name.startswith(("ansible_", "_", *prefixes)):
            continue
        near = next(iter(difflib.get_close_matches(name, names, 1, NEAR)), "")
        near = next((short for short, flag in _FLAGS.items() if flag == name), near)
        if near:
            yield _problem(name, value, f"{verb}.yml has no such short name", f"Did you mean {near}?")
        elif name in of_trainings:
            fault = f"{verb}.yml has no such short name; it has {', '.join(names)}"
            yield _problem(name, value, fault, "Set it in workloads_trainings in the inventory, under the run's name.")


def wrong(given: Mapping[str, Any], verb: str) -> Iterator[Problem]:
    """Refuse short names with a value of the wrong type."""
    for name, kind in VERBS[verb].items():
        value = given.get(name)
        if name not in given:
            continue
        if not fits(value, kind) or value in (None, "") or (kind == "int" and typed(value, kind) < 0):
            yield _problem(name, value, f"not {_KINDS[kind]}", f"Write {_KINDS[kind]}.")
    if given.get("resume", "auto") not in ("auto", "fresh"):
        yield _problem("resume", given["resume"], "not one of the allowed values", "Use one of: auto, fresh.")


def stop_call(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Refuse a stop without confirmation."""
    run = given.get("run")
    if not run:
        yield _problem("run", None, "train_stop.yml stops one run", "Give its name twice, as run and as confirm.")
    elif given.get("confirm") != run:
        remedy = f"Give -e confirm={run} as well. The run then saves its state and ends."
        yield _problem("confirm", given.get("confirm"), f'not the name of the run, "{run}"', remedy)


def train_call(
    given: Mapping[str, Any], listed: Sequence[Mapping[str, Any]], catalogue: Catalogue
) -> tuple[Call | None, list[Problem]]:
    """Return the training that a call requests, and the problems of the call.

    The short names override the description in a `run_file`, else the inventory's entry of the run with this name.

    :param given: short names with values of the right types.
    :param listed: `workloads_trainings` of the site.
    """
    called = {**given, "code": {"folder": given["code"]}} if "code" in given else given
    described: Mapping[str, Any] = {}
    if "run_file" in given:
        try:
            described = read_run(str(given["run_file"]))
        except TrainyardError as error:
            return None, [_problem("run_file", given["run_file"], error.message.rstrip("."), error.remedy)]
        called = {**described, **called}
    name, folder = run_name(called), naming_folder(called)
    if folder and not name_of_folder(folder):
        return None, [_problem("code", folder, NAMELESS, "Set the name of the run with -e run=NAME.")]
    base = described or next((each for each in listed if name and run_name(each) == name), {})
    workload = given.get("workload") or base.get("workload")
    if not workload:
        remedy = f"Use one of: {', '.join(sorted(catalogue))}."
        return None, [_problem("workload", None, "train.yml runs one workload of the catalogue", remedy)]
    if base and base["workload"] != workload:
        fault = f"workloads_trainings has it with the workload {base['workload']}"
        return None, [_problem("run", name, fault, "Choose another name.")]
    try:
        entry = entry_of({"workload": workload}, catalogue)
    except TrainyardError as error:
        return None, [_problem("workload", workload, "not in the catalogue of workloads", error.remedy)]
    if faults := list(no_mappings(base)):
        return None, [
            Problem(
                f"{each.key} of {name} in workloads_trainings", each.shown.removeprefix("is "), each.want, "Change it."
            )
            for each in faults
        ]
    # The call has its own command, in one form or the other.
    instead = {"command": "shell", "shell": "command"}
    base = {key: value for key, value in base.items() if instead.get(key) not in given}
    above, problems = _above(given, entry)
    # A run named after its folder gets no explicit name, so that another program cannot use its files.
    own = {} if folder else {"run": name}
    wanted = merged(with_roles({**base, "workload": workload, **own}), above)
    wait = typed(given.get("wait", True), "bool")
    flags = {**(entry.get("flags") or {}), **(wanted.get("flags") or {}), **wanted}
    if wait and "wait" in given and str(flags.get("train_steps")) == "0":
        problems.append(_problem("wait", True, "a training with steps 0 never ends", "Use wait=false."))
    if given.get("replace", name) != name:
        fault = f'not the name of the run, "{name}"'
        problems.append(_problem("replace", given["replace"], fault, f"Give -e replace={name} to end that run."))
    call = Call(wanted, wait, str(given.get("resume", "auto")), replace="replace" in given)
    return (None if problems else call), problems


def _above(given: Mapping[str, Any], entry: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Return the changes of the short names to an entry, and their problems."""
    problems = []
    topology = TOPOLOGIES.get(str(entry.get("topology", "parameter_server")))
    above: dict[str, Any] = {name: given[name] for name in _LINES if name in given}
    if "command" in given and "shell" in given:
        problems.append(_problem("shell", given["shell"], "set together with command", "Give one of them."))
    if "code" in given:
        above["code"] = {"folder": given["code"]}
    for short, role in _COUNTS.items():
        if short in given:
            above[role] = {"replicas": typed(given[short], "int")}
            if topology and role not in topology.roles:
                problems.append(_problem(short, given[short], f"this workload has no {role}", "Leave it out."))
    for name in topology.roles if topology else ():
        if changes := _of_role(given, entry, name):
            above[name] = {**above.get(name, {}), **changes}
    above |= {name: typed(given[name], "int") for name in _LIMITS if name in given}
    if "success" in given:
        above["success"] = success = _success(str(given["success"]))
        if not success:
            remedy = 'Write a metric, >= or <=, and a number, such as success="accuracy >= 0.97"; or exit_code.'
            problems.append(_problem("success", given["success"], "not a condition", remedy))
    if "gpus" in given and topology:
        computing = next(name for name, kind in topology.roles.items() if kind.computes)
        above[computing] = {**above.get(computing, {}), "gpus": typed(given["gpus"], "int")}
    for short, flag in _FLAGS.items():
        if short not in given:
            continue
        if flag in (entry.get("flags") or {}):
            above[flag] = typed(given[short], "int")
        else:
            problems.append(_problem(short, given[short], "this workload's program has no such flag", "Leave it out."))
    if "data" in given:
        data = str(given["data"])
        source = data if data in SOURCES else "image" if "/" in data or ":" in data else "claim"
        named = {"image": {"image": data}, "claim": {"claim": data, "folder": ""}}
        above["data"] = {"source": source, **(named[source] if source != data else {})}
    if "data_mount" in given:
        above["data"] = {**above.get("data", {}), "mount": str(given["data_mount"])}
    if "env" in given:
        above["env"] = dict(given["env"])
    return above, problems


def _of_role(given: Mapping[str, Any], entry: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return the changes that the short names of pods make to each role.

    Memory is also requested, because a pod that gets less than its limit is killed. A request for CPU stays below the
    limit.
    """
    changes: dict[str, Any] = {name: str(given[name]) for name in ("shm", "image") if name in given}
    limits = {name: str(given[name]) for name in ("cpu", "memory") if name in given}
    if not limits:
        return changes
    of_role = entry.get(role)
    requests = merged(
        entry.get("requests") or {}, (of_role if isinstance(of_role, Mapping) else {}).get("requests") or {}
    )
    wanted = {"memory": limits["memory"]} if "memory" in limits else {}
    if "cpu" in limits and _exceeds(requests.get("cpu", 0), limits["cpu"]):
        wanted["cpu"] = limits["cpu"]
    return {**changes, "limits": limits, **({"requests": wanted} if wanted else {})}


def _exceeds(request: Any, limit: str) -> bool:
    """Return whether a request is larger than a limit; false for a text that is no quantity, which is refused later."""
    try:
        return amount(request) > amount(limit)
    except ValueError:
        return False


def _success(text: str) -> Any:
    """Return the condition in a text such as `val_loss <= 0.2`; None if it has none."""
    if text.strip() == "exit_code":
        return "exit_code"
    found = _BOUND.fullmatch(text.strip())
    value = number_in(found[3]) if found else None
    if not found or value is None or not math.isfinite(value):
        return None
    return {"metric": found[1], _BOUNDS[found[2]]: value}


def _problem(name: str, value: Any, fault: str, remedy: str) -> Problem:
    return Problem(f"variable {name}", "missing" if value is None else quoted(value), fault, remedy)
