"""The data that the rules of a site check, and the problem that a rule finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SHOWN_HOSTS = 3
"""Number of hosts that a problem names before "and N more"."""

SHOWN_VALUE = 120
"""Limit of the characters of a quoted value."""


MAGIC = (
    *("group_names", "groups", "omit", "playbook_dir", "inventory_dir", "inventory_file"),
    *("inventory_hostname", "inventory_hostname_short"),
)
"""Variables that Ansible itself adds to each host."""


class _Unresolved:
    """A value that needs facts, secrets or an undefined variable, so that it is unknown before the run."""

    def __repr__(self) -> str:
        return "UNRESOLVED"


UNRESOLVED: Final = _Unresolved()


CONTROLLER_PYTHON = "{{ ansible_playbook_python }}"
"""The Python that runs Ansible; an implicit localhost has it."""


@dataclass(frozen=True)
class Option:
    """One variable, or one key of a dictionary, as an argument specification declares it.

    :param type: Ansible's name of the type ("str", "int", "list" ...).
    :param elements: type of a list's elements; empty if it is not declared.
    :param choices: the allowed values; empty if all values of the type are allowed.
    :param options: the keys of a dictionary (or of each dictionary of a list); empty if all keys are allowed.
    """

    type: str = "str"
    elements: str = ""
    choices: tuple[Any, ...] = ()
    required: bool = False
    no_log: bool = False
    options: Mapping[str, Option] = field(default_factory=dict)

    @classmethod
    def parse(cls, spec: Mapping[str, Any]) -> Option:
        """Read one entry of `options` of an `argument_specs.yml`."""
        return cls(
            type=spec.get("type", "str"),
            elements=spec.get("elements", ""),
            choices=tuple(spec.get("choices") or ()),
            required=bool(spec.get("required")),
            no_log=bool(spec.get("no_log")),
            options={name: cls.parse(inner) for name, inner in (spec.get("options") or {}).items()},
        )


@dataclass(frozen=True)
class Setting:
    """A value of a variable, with the hosts that share it.

    :param value: plain data, or `UNRESOLVED`.
    :param hosts: empty for a role's default.
    :param origin: "file:line" of the value, or empty.
    :param controller: whether the controller has it, too, as for a variable of all hosts.
    :param sealed: keys of a secret dictionary that have an encrypted part.
    """

    name: str
    value: Any
    hosts: tuple[str, ...] = ()
    origin: str = ""
    controller: bool = True
    sealed: frozenset[str] = frozenset()

    @property
    def resolved(self) -> bool:
        return self.value is not UNRESOLVED


@dataclass(frozen=True)
class Site:
    """All data of a site that is known before the first connection.

    :param groups: group -> names of its hosts, including the hosts of its child groups.
    :param addresses: host -> its address or DNS name, without hosts with a local connection.
    :param ports: host -> its SSH port, if the inventory sets one.
    :param settings: the variables that the inventory or the command line sets.
    :param defaults: the roles' own values.
    :param computed: values of the roles' defaults that have a form, without those that only a run can compute.
    :param forms: variable -> its form, as `forms` describes it.
    :param options: the roles' declared variables.
    :param roles: names of all roles.
    :param namespaces: namespaces of the roles' own parts of the cluster.
    :param locked: variable -> artefact whose locked version is its default, and which it has to match.
    :param versions: artefact -> its version without a leading "v"; None if there is no lock to compare with.
    :param cuda: image in the lock -> its version of CUDA, without images that have none.
    :param catalogue: workload -> its entry in the catalogue.
    :param is_root: whether the controller's user may create containers.
    :param controller_python: Python of a localhost that the inventory lists: `CONTROLLER_PYTHON`, another one, or empty
        for that of ansible.cfg; None without such a host.
    :param unexpected_files: files in the inventory's folder that were not written as an inventory.
    """

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, str] = field(default_factory=dict)
    settings: Sequence[Setting] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    computed: Mapping[str, Any] = field(default_factory=dict)
    forms: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    roles: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    locked: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] | None = None
    cuda: Mapping[str, str] = field(default_factory=dict)
    catalogue: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    is_root: bool = True
    controller_python: str | None = None
    unexpected_files: Sequence[str] = ()

    def values(self, name: str) -> Iterator[Setting]:
        """Return the resolved values of a variable: the values that are set, else the role's default."""
        found = [setting for setting in self.settings if setting.name == name]
        if not found and name in self.defaults:
            found = [Setting(name, self.defaults[name])]
        return (setting for setting in found if setting.resolved and setting.value is not None)


@dataclass(frozen=True)
class Problem:
    """One refusal.

    :param subject: the faulty object with its kind: "variable x", "host y", "group z".
    :param value: the wrong value, as text.
    :param fault: why it is wrong, as a clause.
    :param remedy: how to correct it, as a sentence.
    :param hosts: hosts with the value, if the subject is not a host itself.
    :param origin: "file:line", or empty.
    """

    subject: str
    value: str
    fault: str
    remedy: str
    hosts: tuple[str, ...] = ()
    origin: str = ""

    def __str__(self) -> str:
        where = ", ".join(text for text in (self.origin, named(self.hosts)) if text)
        return f"{self.subject}{f' ({where})' if where else ''} is {self.value}: {self.fault}. {self.remedy}"


def problem(setting: Setting, fault: str, remedy: str, *, key: str = "", value: Any = UNRESOLVED) -> Problem:
    """Return a problem of a variable, or of one key inside it.

    :param key: path inside the value (".worker.limits"), or empty.
    :param value: the wrong part; without it, the whole value.
    """
    shown = quoted(setting.value if value is UNRESOLVED else value)
    return Problem(f"variable {setting.name}{key}", shown, fault, remedy, setting.hosts, setting.origin)


def quoted(value: Any) -> str:
    """Return a value as text for the user: strings in quotes, long values cut."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN_VALUE else f"{text[:SHOWN_VALUE]} ..."


def named(hosts: Sequence[str]) -> str:
    """Return some hosts as text, the first few by name."""
    shown = ", ".join(hosts[:SHOWN_HOSTS])
    more = len(hosts) - SHOWN_HOSTS
    return f"{shown} and {more} more" if more > 0 else shown
