"""The variables of a site as the rules look at them: raw, or templated without lookups, each with its place."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleError

from ..core.errors import TrainyardError
from .model import MAGIC, UNRESOLVED, Option, Setting
from .rules import DEFAULTS_READ
from .typed import SCALARS, typed

try:
    from ansible._internal._datatag._tags import Origin
except ImportError:
    # Without Ansible's own record of where a value was written, problems name variable and hosts only.
    Origin = None

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TEMPLATE = re.compile(r"\{\{|\{%|\{#")


class Resolver:
    """Templates single values in the context of a host, above the roles' defaults."""

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
            raise AnsibleError(f"The lookup {name} is not carried out during validation.")

        self._templar = templar
        self._raw = raw
        self._below = defaults
        # A variable hides Jinja's function of the same name.
        self._above = {"hostvars": hostvars, "lookup": lookup, "query": lookup, "q": lookup}
        self._templars: dict[str, Any] = {}

    def value(self, host: str, value: Any) -> Any:
        """Plain data, or UNRESOLVED."""
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
            # Undefined before the run, a fact, a lookup, a filter that complains: the role will say it better.
            return UNRESOLVED
        return found if _kind(found) != "opaque" else UNRESOLVED


def _kind(value: Any) -> str:
    """ "plain", "template" (a template somewhere inside) or "opaque" (a vaulted value or something unknown)."""
    if isinstance(value, str):
        return "template" if _TEMPLATE.search(value) else "plain"
    if value is None or isinstance(value, (bool, int, float)):
        return "plain"
    if isinstance(value, Mapping):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple)):
        inner = list(value)
    else:
        # No option has such a type; vaulted text is not decrypted here.
        return "opaque"
    kinds = {_kind(item) for item in inner}
    return next((kind for kind in ("opaque", "template") if kind in kinds), "plain")


def collect_settings(
    raw: Mapping[str, Mapping[str, Any]], resolver: Resolver, options: Mapping[str, Option], roles: frozenset[str]
) -> list[Setting]:
    """The variables of all hosts; hosts with the same value share a setting."""
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
            # The controller has the variables of `all` as well; a problem names the site's hosts.
            hosts.remove("localhost")
        wanted = name in options or name in DEFAULTS_READ or name.startswith(prefixes)
        option = options.get(name, Option("raw"))
        for resolved, sharing in _resolved(resolver, hosts, value) if wanted else [(UNRESOLVED, hosts)]:
            settings.append(Setting(name, as_declared(resolved, option), tuple(sharing), _origin(value), controller))
    return settings


def as_declared(value: Any, option: Option) -> Any:
    """A value with the texts in it as the types that are declared; one that cannot be converted stays as it is."""
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


def _resolved(resolver: Resolver, hosts: list[str], value: Any) -> list[tuple[Any, list[str]]]:
    """The values that a variable has, each with its hosts: a template may give every host another one."""
    if _kind(value) != "template":
        return [(resolver.value(hosts[0], value), hosts)]
    found: dict[str, tuple[Any, list[str]]] = {}
    for host in hosts:
        one = resolver.value(host, value)
        found.setdefault(repr(one), (one, []))[1].append(host)
    return list(found.values())


def _origin(value: Any) -> str:
    """Where a value was written, as "file:line" relative to the working directory."""
    tag = Origin.get_tag(value) if Origin else None
    if tag is None:
        return ""
    if not tag.path:
        return tag.description or ""
    path = os.path.relpath(tag.path)
    return f"{tag.path if path.startswith('..') else path}:{tag.line_num}"


def read_lock(path: Path) -> dict[str, dict[str, Any]]:
    """The entries of a lock by their names.

    :raises TrainyardError: it cannot be read.
    """
    return dict((read(path) or {}).get("artefacts", {}))


def read(path: Path) -> Any:
    """A YAML file without templates as plain data; ten times as fast as Ansible's own reading."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - a safe loader
    except (OSError, yaml.YAMLError) as error:
        raise TrainyardError(f"{path} cannot be read: {error}.") from error
