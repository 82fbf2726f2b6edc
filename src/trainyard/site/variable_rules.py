"""Rules about single variables, and about the tags of a call.

Parts: the conversion of texts to their declared types; the rules; the tags. The conversion is needed because
`-e name=false` and an INI inventory can give only texts. The rules check known names, declared types, and versions of
the lock. The playbooks have no tags for parts, so a call with tags would succeed without doing anything. Therefore the
last part refuses them.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from .site_model import Option, Problem, Setting, Site, problem, quoted

SCALARS = ("bool", "int", "float")

_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
"""The words of Ansible's filter `bool`, which roles use. It converts all other texts, such as "y", to false."""

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
"""A template may print the text unchanged, so only the canonical form of a number is accepted."""


def typed(value: Any, kind: str) -> Any:
    """Convert a value to a type.

    :param kind: bool, int or float.
    :raises ValueError: the value does not have this type.
    """
    if kind == "bool":
        # 1 and 0 are accepted; 1.0 and 0.0 are not.
        word = str(value).lower()
        if isinstance(value, (bool, int, str)) and word in _BOOLEANS:
            return _BOOLEANS[word]
    elif isinstance(value, bool):
        pass
    elif kind == "int" and (isinstance(value, int) or (isinstance(value, str) and _WHOLE.fullmatch(value))):
        return int(value)
    elif kind == "float" and isinstance(value, (int, float, str)) and math.isfinite(number := float(value)):
        return number
    raise ValueError(f"{value!r} is not of the type {kind}")


NEAR_WITH_PREFIX = 0.6
"""Similarity from which a name is suggested for an unknown variable with a role's prefix."""

NEAR_WITHOUT_PREFIX = 0.9
"""Similarity from which a variable without a role's prefix counts as misspelt, and not as the user's own."""

PREFLIGHT_SUFFIX = "ignore_preflight_errors"

RENAMED = {
    "workloads_training": "Write it as an element of the list workloads_trainings, with its name as the key run.",
    "workloads_catalogue": "Put each workload of your own into a file of one folder, and list that folder there.",
}
"""Removed variables -> their replacement."""

OF_PLAYBOOKS = {"site_hosts": Option("raw"), "site_objects": Option("bool"), "site_unready_hosts": Option("list")}
"""Variables of playbooks/site.yml itself. No role declares them."""

OF_HOSTS = "ansible_python_interpreter"
"""A variable of a call that would also apply to the controller, whose modules need the packages beside Ansible."""

MEANT = {"state": "workloads_state (of trainings) or reprovision_state (of the schedule)"}
"""Unread variables of a call -> probable replacements. In an inventory they may be the user's own."""

_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "a dictionary",
}


def unknown_variable(site: Site) -> Iterator[Problem]:
    """Refuse undeclared variables with a role's prefix, and misspelt names of declared variables."""
    verdicts: dict[str, tuple[str, list[str]] | None] = {}
    for setting in site.settings:
        name = setting.name
        if name in site.options or name.startswith(("ansible_", "_")):
            continue
        if name not in verdicts:
            verdicts[name] = _stranger(name, site)
        verdict = verdicts[name]
        if verdict:
            fault, near = verdict
            remedy = f"Did you mean {near[0]}?" if near else "Remove it, or choose a name without a role's prefix."
            remedy = RENAMED.get(name, remedy)
            yield problem(setting, fault, remedy, value=_hidden(name, setting.value))


def _stranger(name: str, site: Site) -> tuple[str, list[str]] | None:
    """Return why an undeclared name is refused, and similar names; None if it is the user's own variable."""
    owners = [role for role in site.roles if name.startswith(f"{role}_")]
    if owners:
        role = max(owners, key=len)
        near = difflib.get_close_matches(name, site.options, 1, NEAR_WITH_PREFIX)
        return f"the role {role} has no such variable", near
    near = difflib.get_close_matches(name, site.options, 1, NEAR_WITHOUT_PREFIX)
    return ("no role has such a variable, and it looks misspelt", near) if near else None


def meant(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Refuse variables of a call (`-e`) that nothing reads and that are probably another variable.

    :param given: the variables of the call.
    """
    for name, other in MEANT.items():
        if name in given:
            yield Problem(f"variable {name}", quoted(given[name]), "nothing reads it", f"Did you mean {other}?")
    if OF_HOSTS in given:
        remedy = "Set it for the hosts, in the inventory."
        yield Problem(f"option -e {OF_HOSTS}", quoted(given[OF_HOSTS]), "it would also apply to the controller", remedy)


def wrong_type(site: Site) -> Iterator[Problem]:
    """Refuse a value that does not have the type or the choices of its argument specification."""
    for setting in site.settings:
        option = site.options.get(setting.name)
        if option and setting.resolved:
            yield from _mismatches(setting, "", setting.value, option)


def _mismatches(setting: Setting, key: str, value: Any, option: Option) -> Iterator[Problem]:
    if value is None:
        return
    shown = "(hidden)" if option.no_log else value
    if not fits(value, option.type):
        yield problem(setting, f"not {_describe(option.type)}", _type_remedy(option.type), key=key, value=shown)
        return
    if option.choices and str(value) not in [str(choice) for choice in option.choices]:
        allowed = ", ".join(str(choice) for choice in option.choices)
        yield problem(setting, "not one of the allowed values", f"Use one of: {allowed}.", key=key, value=shown)
    if isinstance(value, Mapping):
        yield from _wrong_keys(setting, key, value, option)
    elif option.type == "list":
        inner = Option(type=option.elements or "raw", no_log=option.no_log, options=option.options)
        for index, element in enumerate(value):
            yield from _mismatches(setting, f"{key}[{index}]", element, inner)


def _wrong_keys(setting: Setting, key: str, value: Mapping[str, Any], option: Option) -> Iterator[Problem]:
    if not option.options:
        return
    for name, inner in value.items():
        if name in option.options:
            yield from _mismatches(setting, f"{key}.{name}", inner, option.options[name])
            continue
        near = difflib.get_close_matches(str(name), option.options, 1, NEAR_WITH_PREFIX)
        remedy = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(option.options)}."
        shown = "(hidden)" if option.no_log else _hidden(str(name), inner)
        yield problem(setting, "an unknown key", remedy, key=f"{key}.{name}", value=shown)
    for name, inner_option in option.options.items():
        if inner_option.required and name not in value:
            yield problem(setting, f"the key {name} is missing", f"Add {name} to it.", key=key, value=list(value))


def fits(value: Any, kind: str) -> bool:
    """Return whether a role can use a value as a type.

    A string is not a list, although Ansible's modules would split it. Numbers and booleans may be strings, because an
    INI inventory and `-e name=value` have only strings. Roles and rules convert them.
    """
    if kind in SCALARS:
        try:
            typed(value, kind)
        except ValueError:
            return False
        return True
    if kind == "list":
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if kind == "dict":
        return isinstance(value, Mapping)
    if kind in ("str", "path"):
        # A float is probably a version without quotes (1.30 would become 1.3).
        return not isinstance(value, (bool, float, Mapping, list, tuple))
    return True


def _describe(kind: str) -> str:
    return _NAMES.get(kind, "a string")


def _type_remedy(kind: str) -> str:
    return "Put it in quotes." if kind in ("str", "path") else f"Write {_describe(kind)}."


def _hidden(name: str, value: Any) -> Any:
    """Return the value, or a placeholder if its name suggests a secret. An unknown name has no `no_log`."""
    secret = any(word in name for word in ("password", "secret", "token", "private", "credential"))
    return "(hidden)" if secret else value


def version_not_locked(site: Site) -> Iterator[Problem]:
    """Refuse a version that the bundle does not contain."""
    if site.versions is None:
        return
    for name, artefact in site.locked.items():
        locked = site.versions.get(artefact)
        for setting in site.values(name):
            if locked is None or str(setting.value).removeprefix("v") == locked:
                continue
            remedy = f"Use {quoted(locked)}, or change the lock file and build the bundle again."
            yield problem(setting, f"the lock has only {artefact} {locked}", remedy)


def preflight_errors_ignored(site: Site) -> Iterator[Problem]:
    """Refuse to ignore all preflight errors of kubeadm."""
    for setting in site.settings:
        if not setting.name.endswith(PREFLIGHT_SUFFIX) or not setting.resolved:
            continue
        errors = [setting.value] if isinstance(setting.value, str) else setting.value or []
        if any(str(error).strip().lower() == "all" for entry in errors for error in str(entry).split(",")):
            yield problem(
                setting,
                "all would hide the errors that matter",
                "Name the checks that do not apply here, for example SystemVerification.",
            )


def unsafe_texts(site: Site) -> Iterator[Problem]:
    """Refuse texts with a line break, and paths with `..`, because roles write them to files and use them in paths."""
    for setting in site.settings:
        option = site.options.get(setting.name)
        # Environments and commands of trainings may have several lines. Other rules check their other keys.
        if option is None or not setting.resolved or setting.name == "workloads_trainings":
            continue
        for key, text in _texts(setting.value):
            # Keys and certificates have several lines.
            if key.endswith((".content", ".signed_by")):
                continue
            shown = "(hidden)" if option.no_log else text
            if "\n" in text or "\r" in text:
                yield problem(setting, "more than one line", "Write it in one line.", key=key, value=shown)
            # Paths on the controller may lead anywhere, as its user chooses them.
            elif option.type != "path" and ".." in text.split("/"):
                yield problem(setting, "a path that leads upwards", "Write it without '..'.", key=key, value=shown)


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield all strings inside a value with their places, including the names of keys."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield f"{key}.(key)", str(name)
            yield from _texts(inner, f"{key}.{name}")
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _texts(inner, f"{key}[{index}]")


VARIABLE_RULES = (unknown_variable, wrong_type, version_not_locked, preflight_errors_ignored, unsafe_texts)


KNOWN = frozenset({"all", "always", "untagged", "validate"})
"""Ansible's own tags that do not skip the work, and the tag of the validation."""


def unknown_tags(wanted: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each tag of `--tags` that would skip all work."""
    for tag in sorted(set(wanted) - KNOWN):
        yield Problem(
            f"option --tags {tag}",
            "unknown",
            "the playbooks have no tags for parts, because a part needs the facts of earlier parts",
            "Run the playbook without --tags: it changes only what differs. For some hosts set -e site_hosts=HOST.",
        )
