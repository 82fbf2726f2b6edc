#!/usr/bin/env python3
"""Write docs/reference/versions.md from bundle.lock.yml, the only source of versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "reference" / "versions.md"
MADE_FROM = {
    "go_programs": "Go modules, hashes in go.sum",
    "go_module_files": "Go module, hash in go.sum",
    "c_program": "C source of this repository",
    "c_library": "C source of this repository",
    "deb": "the programs above, in the vendor's layout",
    "debian_packages": "Debian's signed archive",
    "apt_repository": "the packages above",
    "rootfs": "Debian's signed archive",
    "program_output": "a program of this repository, in the root file system above",
    "disk": "the root file system above",
    "python_wheels": "Python index, hashes in requirements.txt",
    "npm_files": "npm, hash in the lock",
    "image": "the artefacts above",
    "code": "code of this repository",
    "archive": "the artefacts above",
    "vendor_files": "not built: only the vendor has it",
    "vendor_image": "not built: only the vendor has it",
}


def render(lock: dict[str, Any]) -> str:
    """Return the page for a lock file."""
    lines = [
        "# Versions",
        "",
        "Generated from `bundle.lock.yml` by `python3 tools/versions.py`; a test keeps it current.",
        "",
        "| artefact | version | made from | published by the vendor as |",
        "| --- | --- | --- | --- |",
    ]
    for name, entry in lock["artefacts"].items():
        product = str(entry.get("package", "") if entry["kind"] == "deb" else entry.get("reference", "").split(":")[0])
        label = f"{name} (`{product}`)" if product else name
        upstream = _upstream(entry.get("upstream") or {}, entry)
        lines.append(f"| {label} | {entry['version']} | {MADE_FROM[entry['kind']]} | {upstream} |")
    carried = {name: each for name, each in lock["artefacts"].items() if "licence" in each}
    if carried:
        named = ", ".join(f"{name} {each['version']} ({each['licence']})" for name, each in carried.items())
        lines += ["", f"Pages of the console include, each with its licence: {named}."]
    return "\n".join(lines) + "\n"


def _upstream(upstream: dict[str, Any], entry: dict[str, Any]) -> str:
    if "apt" in upstream:
        version = upstream.get("version", entry["version"])
        return f"{entry['package']} {version} in {upstream['apt']}, key {upstream['signed_by'][-16:]}"
    if "image" in upstream:
        return _pin(upstream["image"], "@")
    return ", ".join(_pin(item["url"], "#sha256=") for item in upstream.get("downloads", []))


def _pin(text: str, mark: str) -> str:
    address, _, pin = text.partition(mark)
    return f"{address} ({'not pinned yet' if pin == 'unpinned' else pin.removeprefix('sha256:')[:12]})"


if __name__ == "__main__":
    TARGET.write_text(render(yaml.safe_load((ROOT / "bundle.lock.yml").read_text(encoding="utf-8"))), encoding="utf-8")
