"""Collect the variables of a site for the rules: raw, or templated without lookups, each with its origin."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleError
from ansible.parsing.vault import is_encrypted_file

from ..core.errors import TrainyardError
from .rules import DEFAULTS_READ
from .site_model import MAGIC, UNRESOLVED, Option, Setting
from .stated import parts_of
from .variable_rules import SCALARS, typed

try:
    from ansible._internal._datatag._tags import Origin
except ImportError:
    # Without Ansible's record of a value's origin, problems name only the variable and the hosts.
    Origin = None

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TEMPLATE = re.compile(r"\{\{|\{%|\{#")


class Resolver:
    """Templates single values with the variables of a host and the roles' defaults."""

    def __init__(
        self,
        templar: Any,
        raw: Mapping[str, Mapping[str, Any]],
        defaults: Mapping[str, Any],
        hostvars: Any,
        versions: Mapping[str, str],
    ) -> None:
        def lookup(name: str, *terms: str, **_: Any) -> str:
            if name.rpartition(".")[2] == "locked_version" and len(terms) == 1 and terms[0] in versions:
                return versions[terms[0]]
            raise AnsibleError(f"The lookup {name} is not evaluated during validation.")

        self._templar = templar
        self._raw = raw
        self._below = defaults
        # These variables shadow Jinja's functions of the same names.
        self._above = {"hostvars": hostvars, "lookup": lookup, "query": lookup, "q": lookup}
        self._templars: dict[str, Any] = {}

    def value(self, host: str, value: Any) -> Any:
        """Return a value as plain data, or UNRESOLVED."""
        kind = _kind(value)
        if kind == "plain":
            return value
        if kind == "opaque":
            return UNRESOLVED
        if host not in self._templars:
            variables = {**self._below, **self._raw[host], **self._above}
            self._templars[host] = self._templar.copy_with_new_env(available_variables=variables)
        try:
            found = self._templars[host].template(value)
        except Exception:
            # An undefined variable, a fact, a lookup or a failing filter. The role reports it better.
            return UNRESOLVED
        return found if _kind(found) != "opaque" else UNRESOLVED


def _kind(value: Any) -> str:
    """Return "plain", "template" (a template somewhere inside) or "opaque" (a vaulted value or an unknown type)."""
    if isinstance(value, str):
        return "template" if _TEMPLATE.search(value) else "plain"
    if value is None or isinstance(value, (bool, int, float)):
        return "plain"
    if isinstance(value, Mapping):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple)):
        inner = list(value)
    else:
        # No option has such a type, and vaulted text is not decrypted here.
        return "opaque"
    kinds = {_kind(item) for item in inner}
    return next((kind for kind in ("opaque", "template") if kind in kinds), "plain")


def collect_settings(
    raw: Mapping[str, Mapping[str, Any]], resolver: Resolver, options: Mapping[str, Option], roles: frozenset[str]
) -> list[Setting]:
    """Return the variables of all hosts. Hosts with the same value share a setting."""
    hosts_of: dict[Any, list[str]] = {}
    values: dict[Any, Any] = {}
    for host, variables in raw.items():
        for name, value in variables.items():
            if name in MAGIC or name.startswith(("ansible_", "__")):
                continue
            scalar = isinstance(value, (str, int, float))
            key = (name, type(value), value) if scalar else (name, id(value))
            hosts_of.setdefault(key, []).append(str(host))
            values[key] = value
    prefixes = tuple(f"{role}_" for role in roles)
    settings = []
    for key, value in values.items():
        name, hosts = str(key[0]), hosts_of[key]
        controller = "localhost" in hosts
        if len(hosts) > 1 and controller:
            # The controller also has the variables of `all`, but a problem names the site's hosts.
            hosts.remove("localhost")
        wanted = name in options or name in DEFAULTS_READ or name.startswith(prefixes)
        option = options.get(name, Option("raw"))
        for resolved, sharing in _resolved(resolver, hosts, value, option) if wanted else [(UNRESOLVED, hosts)]:
            sealed = _sealed(raw[sharing[0]], value, resolved) if option.no_log else frozenset()
            declared = as_declared(resolved, option)
            settings.append(Setting(name, declared, tuple(sharing), _origin(value), controller, sealed))
    return settings


def as_declared(value: Any, option: Option) -> Any:
    """Convert the texts in a value to their declared types. A text that cannot be converted stays unchanged."""
    if option.type in SCALARS:
        try:
            return value if value is None else typed(value, option.type)
        except ValueError:
            return value
    if isinstance(value, list) and option.type == "list":
        inner = Option(type=option.elements or "raw", options=option.options)
        return [as_declared(each, inner) for each in value]
    if isinstance(value, Mapping):
        inside = option.options
        return {key: as_declared(each, inside[key]) if key in inside else each for key, each in value.items()}
    return value


def _resolved(resolver: Resolver, hosts: list[str], value: Any, option: Option) -> list[tuple[Any, list[str]]]:
    """Return the values of a variable, each with its hosts. A template may give a different value for each host.

    A secret dictionary is returned without the keys that are unknown before the run, so that the others are checked.
    """

    def of(host: str) -> Any:
        if not (option.no_log and isinstance(value, Mapping)):
            return resolver.value(host, value)
        known = {key: resolver.value(host, each) for key, each in value.items()}
        return {key: each for key, each in known.items() if each is not UNRESOLVED}

    if _kind(value) == "plain":
        return [(of(hosts[0]), hosts)]
    found: dict[str, tuple[Any, list[str]]] = {}
    for host in hosts:
        one = of(host)
        found.setdefault(repr(one), (one, []))[1].append(host)
    return list(found.values())


def _sealed(raw: Mapping[str, Any], value: Any, resolved: Any) -> frozenset[str]:
    """Return the keys of a dictionary that have an encrypted part, also through other variables.

    :param raw: the untemplated variables of a host; `value` is one of them, and `resolved` the same without templates.
    """
    keys = resolved if isinstance(resolved, Mapping) else ()
    parts = value if isinstance(value, Mapping) else dict.fromkeys(keys, value)
    return frozenset(str(key) for key, each in parts.items() if any(map(_is_encrypted, parts_of(raw, each))))


def _is_encrypted(value: Any) -> bool:
    if _kind(value) == "opaque":
        return True
    tag = Origin.get_tag(value) if Origin else None
    try:
        with open(tag.path if tag else "", "rb") as stream:
            return bool(is_encrypted_file(stream))
    except (OSError, TypeError):
        # A value of a call has no file.
        return False


def _origin(value: Any) -> str:
    """Return the origin of a value as "file:line", relative to the working directory."""
    tag = Origin.get_tag(value) if Origin else None
    if tag is None:
        return ""
    if not tag.path:
        return tag.description or ""
    path = os.path.relpath(tag.path)
    return f"{tag.path if path.startswith('..') else path}:{tag.line_num}"


def read_lock(path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a lock by their names.

    :raises TrainyardError: the lock cannot be read.
    """
    return dict((read(path) or {}).get("artefacts", {}))


def read(path: Path) -> Any:
    """Read a YAML file without templates as plain data. This is ten times as fast as Ansible's loader."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - a safe loader
    except (OSError, yaml.YAMLError) as error:
        raise TrainyardError(f"{path} cannot be read: {error}.") from error
