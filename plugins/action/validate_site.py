"""Collect the data of a site that is known before a connection, and apply the rules of `trainyard.site`.

Variables are read raw, and only values that a rule checks are templated. No lookup except `locked_version` is
evaluated, so the validation runs, reads or fetches nothing else.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ansible import context
from ansible.parsing.splitter import parse_kv
from ansible.plugins.action import ActionBase

PROJECT = Path(__file__).resolve().parents[2]


from trainyard.core.errors import TrainyardError
from trainyard.site import locked_versions
from trainyard.site.collect import Resolver, collect_settings, read, read_lock
from trainyard.site.inventory_file_rules import unexpected_files_of_call
from trainyard.site.role_facts import provided
from trainyard.site.rules import DEFAULTS_READ, EFS_VERB_RULES, RULES, check
from trainyard.site.short_names import VERBS, after_command, of_call, stop_call, strange, train_call, words_taken, wrong
from trainyard.site.site_model import CONTROLLER_PYTHON, UNRESOLVED, Option, Problem, Setting, Site
from trainyard.site.variable_rules import OF_PLAYBOOKS, meant, unknown_tags
from trainyard.trainings.catalogue import read_catalogue

_OF_A_HOST = re.compile(r"ansible_host|inventory_hostname|ansible_facts")
"""Marks of a default that differs between hosts. The rules of hosts check names and addresses."""
_LOCKED = re.compile(r"v?\{\{\s*lookup\(\s*['\"](?:[a-z_.]+\.)?locked_version['\"],\s*['\"](\w+)['\"]\s*\)\s*\}\}")
"""Pattern of a default that is only the locked version of an artefact."""


class ActionModule(ActionBase):
    """Fails with all problems at once, or returns the number of checked hosts and the call."""

    _requires_connection = False
    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(
            argument_spec={
                "project": {"type": "path", "default": str(PROJECT)},
                "verb": {"type": "str", "choices": ["site", "efs", *VERBS], "default": "site"},
            },
        )
        try:
            site, hosts = self._site(Path(arguments["project"]), task_vars["hostvars"])
        except TrainyardError as error:
            return {**result, "failed": True, "msg": str(error)}
        result.update(changed=False, hosts=hosts)
        options = context.CLIARGS.get("extra_vars") or ()
        extra, words = of_call(options, self._read)
        problems = [*unknown_tags(context.CLIARGS.get("tags") or ()), *meant(extra)]
        if arguments["verb"] in VERBS:
            problems += [*words_taken(words, site), *after_command(options)]
            site, wrong_calls, call = self._call(site, arguments["verb"], extra, task_vars)
            problems += wrong_calls
            result["call"] = call
        problems += check(site, EFS_VERB_RULES if arguments["verb"] == "efs" else RULES)
        if problems:
            count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
            subject = "The inventory has" if arguments["verb"] in ("site", "efs") else "The inventory and the call have"
            lines = "".join(f"\n  - {problem}" for problem in problems)
            result.update(failed=True, msg=f"{subject} {count}; nothing was touched.{lines}")
        else:
            result.update(msg=f"{hosts} hosts: no problem found.")
        return result

    def _read(self, option: str) -> Mapping[str, Any]:
        """Read one `-e` like `ansible.utils.vars.load_extra_vars`, which returns only all of them together."""
        if option.startswith("@"):
            return self._loader.load_from_file(option[1:], trusted_as_template=True)
        return self._loader.load(option) if option[0] in "[{" else parse_kv(option)

    def _call(
        self, site: Site, verb: str, extra: Mapping[str, Any], task_vars: Any
    ) -> tuple[Site, list[Problem], dict[str, Any]]:
        """Return the site with the requested training instead of its own, the problems of the call, and the call."""
        given = {name: value for name, value in extra.items() if name in VERBS[verb]}
        problems = [*strange(extra, verb, site), *wrong(given, verb)]
        # The rules of short names report faults of the call's names better than those of variables.
        site = replace(site, settings=[each for each in site.settings if each.name not in VERBS[verb]])
        if verb == "train_stop":
            return site, problems or list(stop_call(given)), given
        known = [each.value for each in site.values("workloads_trainings") if isinstance(each.value, list)]
        if "workloads_trainings" in task_vars:
            # Lookups may be evaluated here, as this run is about to use the value.
            known.append(self._templar.template(task_vars["workloads_trainings"]))
        call = None
        if not problems:
            call, problems = train_call(
                given, [each for each in (known[-1] if known else []) if isinstance(each, Mapping)], site.catalogue
            )
        settings = [each for each in site.settings if each.name != "workloads_trainings"]
        settings.append(Setting("workloads_trainings", [call.wanted] if call else [], origin="with this call"))
        # Without the training itself, because its environment may be secret, and results may be shown.
        said = {**asdict(call), "given": given} if call else {}
        said.pop("wanted", None)
        if "env" in given and call:
            # The role takes the values from the variable `env` of the call.
            said["given"] = {**given, "env": {}}
        return replace(site, settings=settings), problems, said

    def _site(self, project: Path, hostvars: Any) -> tuple[Site, int]:
        """Return the data for the rules, and the number of hosts."""
        options, defaults = self._roles(project)
        forms = {
            name: form for path in sorted(project.glob("roles/*/meta/forms.yml")) for name, form in read(path).items()
        }
        # The controller runs its own plays with the variables of `all`, but is not a host of the site.
        raw = {name: hostvars.raw_get(name) for name in dict.fromkeys([*hostvars, "localhost"])}
        named = raw["localhost"].get(locked_versions.VARIABLE, "")
        named = Resolver(self._templar, raw, defaults, hostvars, {}).value("localhost", named)
        lock = locked_versions.path_of(named, project)
        entries = read_lock(lock) if isinstance(named, str) and (named or lock.exists()) else None
        versions = locked_versions.versions(entries or {})
        resolver = Resolver(self._templar, raw, defaults, hostvars, versions)
        roles = frozenset(path.name for path in (project / "roles").iterdir() if path.is_dir())
        first = next(iter(raw))
        settings = collect_settings(raw, resolver, options, roles)
        folders = [
            item.value for item in settings if item.name == "workloads_catalogues" and isinstance(item.value, list)
        ]
        site = Site(
            groups={name: tuple(hosts) for name, hosts in raw["localhost"]["groups"].items()},
            addresses={
                str(name): str(resolver.value(name, variables.get("ansible_host", name)))
                for name, variables in raw.items()
                if name != "localhost" and variables.get("ansible_connection") != "local"
            },
            ports={str(name): str(known["ansible_port"]) for name, known in raw.items() if "ansible_port" in known},
            settings=settings,
            defaults={name: resolver.value(first, defaults[name]) for name in DEFAULTS_READ if name in defaults},
            computed={
                name: found
                for name in forms
                if name in defaults
                and not _OF_A_HOST.search(str(defaults[name]))
                and (found := resolver.value(first, defaults[name])) is not UNRESOLVED
            },
            forms=forms,
            options=options,
            roles=roles,
            namespaces=frozenset(chain(*provided("namespaces", self._loader, project / "roles"))),
            locked={name: found[1] for name, value in defaults.items() if (found := _LOCKED.fullmatch(str(value)))},
            versions=None if entries is None else versions,
            cuda=locked_versions.cuda(entries or {}),
            catalogue=read_catalogue(dict.fromkeys(chain(*folders)), project / "workloads" / "catalogue"),
            is_root=os.geteuid() == 0,
            controller_python=_controller_python(raw["localhost"]),
            unexpected_files=unexpected_files_of_call(),
        )
        return site, len(hostvars)

    def _roles(self, project: Path) -> tuple[dict[str, Option], dict[str, Any]]:
        """Return the declared variables of all roles, and their defaults."""
        options: dict[str, Option] = dict(OF_PLAYBOOKS)
        defaults: dict[str, Any] = {}
        for path in sorted(project.glob("roles/*/meta/argument_specs.yml")):
            document = read(path) or {}
            owned = f"{path.parents[1].name}_"
            for entry_point in document.get("argument_specs", {}).values():
                for name, spec in (entry_point.get("options") or {}).items():
                    # If several roles declare a variable, use the description of the role that owns it.
                    if name.startswith(owned) or name not in options:
                        options[str(name)] = Option.parse(spec)
        for path in sorted(project.glob("roles/*/defaults/main.yml")):
            # `unsafe` avoids a deep copy.
            defaults.update(self._loader.load_from_file(str(path), unsafe=True, trusted_as_template=True) or {})
        return options, defaults


def _controller_python(variables: Mapping[str, Any]) -> str | None:
    """Return the Python of a localhost in the inventory, for the rules."""
    if "localhost" not in variables["groups"]["all"]:
        return None
    said = str(variables.get("ansible_python_interpreter", ""))
    return CONTROLLER_PYTHON if "ansible_playbook_python" in said or said == sys.executable else said
