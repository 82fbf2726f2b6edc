#!/usr/bin/env python3
"""Change a version in bundle.lock.yml, and everything that names it.

    python tools/lock.py bump kubernetes 1.36.4

Entries made from the artefact follow it: packages, images. Vendors' hashes of the old version become `unpinned`, and
the comments that name their records go; docs/adr/0002-upstream-pins.md describes how to pin the new ones. The Go
wrapper modules get the new version from Go's module proxy, unless `--no-modules` is given.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from trainyard.bundle import lockfile
from trainyard.bundle.origin import UNPINNED
from trainyard.core.command import run
from trainyard.core.errors import TrainyardError

ROOT = Path(__file__).resolve().parent.parent
WRAPPERS = "roles/bundle/files/go"
GO_SECONDS = 1800
NUMBER = re.compile(r"\d+(?:\.\d+)+")
ENTRY = re.compile(r"^  (\w+):$", re.MULTILINE)
HASH = re.compile(r"(?<=@)sha256:[0-9a-f]{64}|(?<=#sha256=)[0-9a-f]{64}|(?<= sha256: )[0-9a-f]{64}")
WRAPPER = re.compile(rf"project:{WRAPPERS}/\w+")
PSEUDO = re.compile(r"\d{14}-[0-9a-f]{12}")
"""A commit in a version of Go that names no release."""
RECORD = ("downloads:", "- url: >-", "url: >-")
"""Lines between a comment and the address with its hash."""
STAGING = re.compile(r"^\s*(?:replace )?(\S+) => \./staging/src/\S+$", re.MULTILINE)
"""Modules that Kubernetes keeps in its own repository and publishes as v0.MINOR.PATCH."""


def number(version: str) -> str:
    """Return `1.36.3` of `v1.36.3` or `1.36.3-1.1`.

    :raises TrainyardError: the text has no version.
    """
    found = NUMBER.search(version)
    if not found:
        raise TrainyardError(f"{version} is not a version.", remedy="Set numbers with dots, such as 1.36.4.")
    return found[0]


def replaced(text: str, old: str, new: str) -> str:
    """Replace a version, but not a part of a longer one."""
    return re.sub(rf"(?<![\d.]){re.escape(old)}(?!\.?\d)", new, text)


def followers(name: str, blocks: Mapping[str, str], numbers: Mapping[str, str]) -> list[str]:
    """Return the entries with the version of an artefact that are made from it or from its Go wrapper, and itself."""
    found = [name]
    wrapper = WRAPPER.search(blocks[name])
    for each in found:
        marks = [f"artefact:{each}/", *([f"{wrapper[0]}\n"] if wrapper else [])]
        found += [
            other for other, block in blocks.items()
            if any(mark in block for mark in marks) and numbers[other] == numbers[name] and other not in found
        ]  # fmt: skip
    return found


def bump(text: str, name: str, version: str) -> tuple[str, list[str]]:
    """Return the lock with another version of an artefact, and the changed entries.

    :param text: the lock as YAML.
    :raises TrainyardError: the entry is unknown, or has this version already.
    """
    marks = [*ENTRY.finditer(text)]
    blocks = {
        mark[1]: text[mark.start() : after.start() if after else len(text)]
        for mark, after in zip(marks, [*marks[1:], None], strict=True)
    }
    entries = yaml.safe_load(text)["artefacts"]
    if name not in entries:
        raise TrainyardError(
            f"bundle.lock.yml has no entry {name}.", remedy=f"Set one of {', '.join(sorted(entries))}."
        )
    numbers = {each: (NUMBER.search(str(entry["version"])) or [""])[0] for each, entry in entries.items()}
    if PSEUDO.search(str(entries[name]["version"])):
        raise TrainyardError(f"{name} is a commit, not a release.", remedy="Change its entry and wrapper by hand.")
    old, new = numbers[name], number(version)
    if old == new:
        raise TrainyardError(f"{name} has the version {new} already.")
    changed = followers(name, blocks, numbers)
    for each in changed:
        text = text.replace(blocks[each], _moved(blocks[each], old, new))
    # A package that contains the artefact names its version in `Provides`.
    text = re.sub(rf"(?<=[ \"]){re.escape(name)} \(= {re.escape(old)}\)", f"{name} (= {new})", text)
    # A repository of a minor version serves other packages, too, so their addresses move with it.
    minors = [".".join(each.split(".")[:2]) for each in (old, new)]
    for address in {entries[each].get("upstream", {}).get("apt", "") for each in changed} - {""}:
        text = text.replace(address, address.replace(f"/v{minors[0]}/", f"/v{minors[1]}/"))
    return text, changed


def _moved(block: str, old: str, new: str) -> str:
    """Return an entry with another version, without the pins of the old one."""
    above, below = block.partition("    upstream:")[::2] if "    upstream:" in block else (block, "")
    lines, comments = [], []
    for line in below.splitlines(keepends=True):
        if line.lstrip().startswith("#"):
            comments.append(line)
            continue
        moved = replaced(line, old, new)
        pinless = HASH.sub(UNPINNED, moved) if moved != line else line
        # Comments name the public records of the old hash. A list's item may begin in the line before its hash.
        if line.strip() in RECORD:
            comments.append(line)
            continue
        kept = [each for each in comments if each.strip() in RECORD] if pinless != moved else comments
        lines += [*kept, pinless]
        comments = []
    return "".join([replaced(above, old, new), *(["    upstream:"] if below else []), *lines, *comments])


def move_modules(root: Path, name: str, old: str, new: str, main: str) -> list[str]:
    """Change the version in all wrapper modules that name it; return their folders.

    :param main: the main module of the artefact, such as k8s.io/kubernetes.
    :raises TrainyardError: Go's proxy has no such version, or the modules do not fit together.
    """
    pairs = [(f"{main} v{old}", f"{main} v{new}")]
    staging = _staging(main, new) if name == "kubernetes" else []
    short = [f"v0.{each.split('.', 1)[1]}" for each in (old, new)]
    pairs += [(f"{module} {short[0]}", f"{module} {short[1]}") for module in staging]
    changed = []
    for path in sorted((root / WRAPPERS).glob("*/go.mod")):
        text = before = path.read_text(encoding="utf-8")
        for one, other in pairs:
            text = replaced(text, one, other)
        if path.parent.name == name and staging:
            block = "".join(f"\t{module} => {module} {short[1]}\n" for module in staging)
            text = re.sub(
                r"^replace \(\n.*?^\)$", f"replace (\n{block})", text, count=1, flags=re.DOTALL | re.MULTILINE
            )
        if text != before:
            path.write_text(text, encoding="utf-8")
            _go("mod", "tidy", folder=path.parent)
            changed.append(path.parent.name)
    return changed


def _staging(main: str, new: str) -> list[str]:
    """Return the modules in Kubernetes' own repository, from the go.mod of the new version."""
    answer = json.loads(_go("mod", "download", "-json", f"{main}@v{new}", folder=Path("/")))
    return STAGING.findall(Path(answer["GoMod"]).read_text(encoding="utf-8"))


def _go(*words: str, folder: Path) -> str:
    return run(["go", *words], cwd=str(folder), timeout=GO_SECONDS).stdout


def main_module(root: Path, entry: Mapping[str, object], old: str) -> str:
    """Return the module in the wrapper of an entry that has its version, such as k8s.io/kubernetes."""
    wrapper = root / str(entry["wrapper"]).removeprefix("project:") / "go.mod"
    found = re.search(
        rf"^\s*(?:require )?(\S+) v{re.escape(old)}(?: |$)", wrapper.read_text(encoding="utf-8"), re.MULTILINE
    )
    if not found:
        raise TrainyardError(f"{wrapper} requires no module of version v{old}.", remedy="Change go.mod by hand.")
    return found[1]


def change(root: Path, name: str, version: str, modules: bool) -> None:
    """Change the checkout at `root`, and print what was changed and what is left to do."""
    lock = root / "bundle.lock.yml"
    text = lock.read_text(encoding="utf-8")
    moved, changed = bump(text, name, version)
    entry = yaml.safe_load(text)["artefacts"][name]
    old = number(str(entry["version"]))
    # Before the first write: it refuses a wrapper that does not name the old version.
    main = main_module(root, entry, old) if modules and "wrapper" in entry else ""
    with _restored([*(root / WRAPPERS).glob("*/go.*")]):
        wrappers = move_modules(root, name, old, number(version), main) if main else []
        lock.write_text(moved, encoding="utf-8")
    artefacts = lockfile.load(lock)
    subprocess.run([sys.executable, root / "tools" / "versions.py"], timeout=60, check=True)
    print(f"bundle.lock.yml: {', '.join(changed)}")
    if wrappers:
        print(f"{WRAPPERS}: {', '.join(wrappers)}")
    unpinned = [each for each in changed if (origin := artefacts[each].origin) and not origin.pinned]
    if unpinned:
        print(f"No hash is known for {', '.join(unpinned)}: pin them (docs/adr/0002-upstream-pins.md), or build them.")


@contextmanager
def _restored(files: Sequence[Path]) -> Iterator[None]:
    """Restore files if an error, such as a version that Go's proxy does not have, ends their change."""
    before = {path: path.read_bytes() for path in files}
    try:
        yield
    except BaseException:
        for path, content in before.items():
            path.write_bytes(content)
        raise


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("bump", help="change the version of an artefact")
    verb.add_argument("name", help="entry of bundle.lock.yml, such as kubernetes")
    verb.add_argument("version", help="such as 1.36.4")
    verb.add_argument("--no-modules", action="store_true", help="leave the Go wrapper modules")
    given = parser.parse_args()
    try:
        change(ROOT, given.name, given.version, not given.no_modules)
    except TrainyardError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
