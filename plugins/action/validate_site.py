"""Collects what is known of a site before any connection and applies the rules of `trainyard.site` to it.

Variables are read raw: only values that a rule looks at are templated, and lookups other than `locked_version` are not
carried out, so that nothing is run, read or fetched on the way.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ansible.module_utils
import yaml
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

PROJECT = Path(__file__).resolve().parents[2]

if str(PROJECT / "module_utils") not in ansible.module_utils.__path__:
    # Ansible ships module_utils to hosts; code on the controller has to be shown where they are.
    ansible.module_utils.__path__.append(str(PROJECT / "module_utils"))
for folder in (PROJECT, PROJECT / "workloads"):
    # The rules, and the workloads' own table of what works together.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

from ansible.module_utils.trainyard.core.errors import TrainyardError

from trainyard.site.model import UNRESOLVED, Option, Setting, Site
from trainyard.site.rules import DEFAULTS_READ, check

try:
    from ansible._internal._datatag._tags import Origin
except ImportError:
    # Without Ansible's own record of where a value was written, problems name variable and hosts only.
    Origin = None

MAGIC = (
    *("group_names", "groups", "omit", "playbook_dir", "inventory_dir", "inventory_file"),
    *("inventory_hostname", "inventory_hostname_short"),
)
"""Variables that Ansible itself adds to every host."""

_LOCKED = re.compile(r"v?\{\{\s*lookup\(\s*['\"](?:[a-z_.]+\.)?locked_version['\"],\s*['\"](\w+)['\"]\s*\)\s*\}\}")
"""A default that is nothing but the locked version of an artefact."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TEMPLATE = re.compile(r"\{\{|\{%|\{#")


class ActionModule(ActionBase):
    """Fails with all problems at once, or returns what was looked at."""

    _requires_connection = False
    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(
            argument_spec={"project": {"type": "path", "default": str(PROJECT)}},
        )
        try:
            site, hosts = self._site(Path(arguments["project"]), task_vars["hostvars"])
        except TrainyardError as error:
            return {**result, "failed": True, "msg": str(error)}
        result.update(changed=False, hosts=hosts)
        problems = check(site)
        if problems:
            count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
            lines = "".join(f"\n  - {problem}" for problem in problems)
            result.update(failed=True, msg=f"The inventory has {count}; nothing was touched.{lines}")
        else:
            result.update(msg=f"{hosts} hosts: no problem found.")
        return result

    def _site(self, project: Path, hostvars: Any) -> tuple[Site, int]:
        """Everything the rules look at, and the number of hosts."""
        options, defaults = self._roles(project)
        versions = _versions(project / "bundle.lock.yml")
        # The controller runs plays of its own, with the variables of `all`; it is no host of the site.
        raw = {name: hostvars.raw_get(name) for name in dict.fromkeys([*hostvars, "localhost"])}
        resolver = _Resolver(self._templar, raw, defaults, hostvars, versions or {})
        roles = frozenset(path.name for path in (project / "roles").iterdir() if path.is_dir())
        first = next(iter(raw))
        settings = _settings(raw, resolver, options, roles)
        catalogues = [item.value for item in settings if item.name == "workloads_catalogue" and item.resolved]
        site = Site(
            groups={name: tuple(hosts) for name, hosts in raw["localhost"]["groups"].items()},
            addresses={
                str(name): str(resolver.value(name, variables.get("ansible_host", name)))
                for name, variables in raw.items()
                if name != "localhost" and variables.get("ansible_connection") != "local"
            },
            settings=settings,
            defaults={name: resolver.value(first, defaults[name]) for name in DEFAULTS_READ if name in defaults},
            options=options,
            roles=roles,
            locked={name: found[1] for name, value in defaults.items() if (found := _LOCKED.fullmatch(str(value)))},
            versions=versions,
            catalogue=_read(Path([project / "workloads" / "catalogue.yml", *catalogues][-1])) or {},
            is_root=os.geteuid() == 0,
        )
        return site, len(hostvars)

    def _roles(self, project: Path) -> tuple[dict[str, Option], dict[str, Any]]:
        """All declared variables of all roles, and their default values."""
        options: dict[str, Option] = {}
        defaults: dict[str, Any] = {}
        for path in sorted(project.glob("roles/*/meta/argument_specs.yml")):
            document = _read(path) or {}
            owned = f"{path.parents[1].name}_"
            for entry_point in document.get("argument_specs", {}).values():
                for name, spec in (entry_point.get("options") or {}).items():
                    # Several roles may read a variable; the one that it belongs to describes it best.
                    if name.startswith(owned) or name not in options:
                        options[str(name)] = Option.parse(spec)
        for path in sorted(project.glob("roles/*/defaults/main.yml")):
            # Read by Ansible, which trusts the templates in it; `unsafe` saves a deep copy.
            defaults.update(self._loader.load_from_file(str(path), unsafe=True) or {})
        return options, defaults


class _Resolver:
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
        # Dates and the like are nobody's type; vaulted strings must not be opened.
        return "opaque"
    kinds = {_kind(item) for item in inner}
    return next((kind for kind in ("opaque", "template") if kind in kinds), "plain")


def _settings(
    raw: Mapping[str, Mapping[str, Any]], resolver: _Resolver, options: Mapping[str, Option], roles: frozenset[str]
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
        if len(hosts) > 1 and "localhost" in hosts:
            # The controller has the variables of `all` as well; a problem names the site's hosts.
            hosts.remove("localhost")
        wanted = name in options or name in DEFAULTS_READ or name.startswith(prefixes)
        for resolved, sharing in _resolved(resolver, hosts, value) if wanted else [(UNRESOLVED, hosts)]:
            settings.append(Setting(name, resolved, tuple(sharing), _origin(value)))
    return settings


def _resolved(resolver: _Resolver, hosts: list[str], value: Any) -> list[tuple[Any, list[str]]]:
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


def _versions(path: Path) -> dict[str, str] | None:
    """Artefact -> version without its "v"; None without a lock.

    :raises TrainyardError: the lock cannot be read.
    """
    if not path.exists():
        return None
    artefacts = (_read(path) or {}).get("artefacts", {})
    return {name: str(entry["version"]).removeprefix("v") for name, entry in artefacts.items() if "version" in entry}


def _read(path: Path) -> Any:
    """A YAML file without templates as plain data; ten times as fast as Ansible's own reading."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except (OSError, yaml.YAMLError) as error:
        raise TrainyardError(f"{path} cannot be read: {error}.") from error
