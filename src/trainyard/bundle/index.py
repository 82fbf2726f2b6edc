"""The index of a mirror: facts about the artefacts of a lock, for a controller that does not have the artefacts.

Each entry is identified by its recipe, whatever the origin of the artefact. Controllers with the same checkout compute
the same address. A controller with another checkout detects this before it compares a host with the wrong versions.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from . import lockfile
from .artefact_store import Store
from .build.kinds import REVISIONS
from .choose import Chooser

SCHEMA = 1
TIMEOUT = 30.0
LIMIT = 16 << 20
"""Largest index in bytes; that of the whole lock has less than one MiB."""

TEXTS = ("go_module_files", "vendor_files")
"""Kinds whose files are manifests that a controller applies to the cluster: the index contains their texts."""

LOCAL = ("path", "layout", "seconds", "origin", "drift")
"""Facts that depend on the machine that made an artefact."""

MANIFESTS = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"


def recipes(lock_file: Path, project: Path, wanted: Iterable[str]) -> dict[str, str]:
    """Return the address that each artefact would have if it were built from its recipe.

    :raises TrainyardError: the lock cannot be read, or lacks a name.
    """
    names = list(wanted)
    artefacts = lockfile.closure(lockfile.load(lock_file), names)
    # The store is empty, so that only the recipes count.
    chooser = Chooser(artefacts, project, REVISIONS, Store("/nonexistent", remembers=False), "source")
    return {name: choice.key for name, choice in chooser.choose(names).items() if name in names}


def render(artefacts: Mapping[str, Mapping[str, Any]], lock_file: Path, project: Path) -> str:
    """Return the index as text, identical for identical artefacts.

    :param artefacts: the result of the module `bundle`.
    """
    keys = recipes(lock_file, project, [name for name in artefacts if artefacts[name].get("path")])
    entries = {
        name: {
            **{fact: value for fact, value in artefacts[name].items() if fact not in LOCAL},
            "recipe": key,
            "texts": _texts(artefacts[name]),
        }
        for name, key in keys.items()
    }
    return json.dumps({"schema": SCHEMA, "artefacts": entries}, sort_keys=True, indent=1) + "\n"


def _texts(artefact: Mapping[str, Any]) -> dict[str, str]:
    folder = Path(artefact["path"])
    # In check mode, the artefact may not exist.
    if artefact.get("kind") not in TEXTS or not folder.is_dir():
        return {}
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.y*ml"))}


def read(source: str, ca_file: str = "") -> dict[str, dict[str, Any]]:
    """Return the entries of an index.

    :param source: https URL, or a path.
    :raises TrainyardError: the index cannot be read or is invalid.
    """
    remedy = f"Run {_renewed(source)} on the controller that builds the artefacts."
    try:
        text = _fetch(source, ca_file) if source.startswith("https://") else Path(source).read_bytes()
        document = json.loads(text)
        entries: dict[str, dict[str, Any]] = document["artefacts"] if document["schema"] == SCHEMA else {}
        if not isinstance(entries, dict) or not all(isinstance(each, dict) for each in entries.values()):
            raise ValueError("its artefacts are not a mapping of mappings")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise TrainyardError(f"The index of artefacts {source} cannot be read: {error}.", remedy=remedy) from error
    if not entries:
        raise TrainyardError(f"The index of artefacts {source} is empty or has another schema.", remedy=remedy)
    return entries


def _renewed(source: str) -> str:
    """Return the playbook that writes an index: a mirror serves its own; another one is on the schedule host."""
    return "playbooks/supply.yml" if source.startswith("https://") else "playbooks/reprovision.yml"


def choose(entries: Mapping[str, Mapping[str, Any]], keys: Mapping[str, str], source: str) -> dict[str, dict[str, Any]]:
    """Return the requested entries, which must match this checkout's recipes.

    :param keys: the result of `recipes`.
    :raises TrainyardError: an entry is missing, or was made by another recipe.
    """
    absent = sorted(name for name in keys if name not in entries)
    other = sorted(name for name in keys if name in entries and entries[name].get("recipe") != keys[name])
    if absent or other:
        parts = [f"lacks {', '.join(absent)}"] if absent else []
        parts += [f"has another {', '.join(other)} than this revision makes"] if other else []
        raise TrainyardError(
            f"The index of artefacts {source} {' and '.join(parts)}.",
            remedy=f"Run {_renewed(source)} of this revision on the controller that builds the artefacts.",
        )
    return {name: dict(entries[name]) for name in keys}


def differing(
    registry: str, images: Mapping[str, str], ca_file: str, ask: Callable[[str, str], str] | None = None
) -> dict[str, str]:
    """Return the tags whose digest in the registry differs from the expected one.

    :param registry: "https://host:port".
    :param images: "repository:tag" -> digest.
    :param ask: takes a manifest's URL and the CA file; returns the digest, or an empty text if the tag is missing.
    :returns: "repository:tag" -> the digest in the registry.
    :raises TrainyardError: the registry does not answer.
    """
    look = ask or _digest
    places = {name: f"{registry}/v2/{'/manifests/'.join(name.rsplit(':', 1))}" for name in images}
    try:
        with ThreadPoolExecutor(4) as pool:
            found = dict(zip(places, pool.map(lambda url: look(url, ca_file), places.values()), strict=True))
    except OSError as error:
        raise TrainyardError(f"The registry {registry} does not answer: {error}.") from error
    return {name: found[name] for name in images if found[name] != images[name]}


def _digest(url: str, ca_file: str) -> str:
    request = urllib.request.Request(url, method="HEAD", headers={"Accept": MANIFESTS})  # noqa: S310 - https, written above
    try:
        with _opener(ca_file).open(request, timeout=TIMEOUT) as answer:
            return str(answer.headers.get("Docker-Content-Digest", ""))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return ""
        raise


def _fetch(url: str, ca_file: str) -> bytes:
    with _opener(ca_file).open(url, timeout=TIMEOUT) as answer:
        content: bytes = answer.read(LIMIT + 1)
    if len(content) > LIMIT:
        raise ValueError(f"more than {LIMIT} bytes")
    return content


def _opener(ca_file: str) -> urllib.request.OpenerDirector:
    """Return a client that does not use a proxy, because the mirror is part of the site."""
    context = ssl.create_default_context(cafile=ca_file or None)
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
