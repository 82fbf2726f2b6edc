"""The plays of site.yml that have to do with the credential of code images, on hosts that are this machine."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.unit.playbooks.runs import ROOT, copy, play, put_fakes

FILES = """
import json, os
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
lists = {name: {"type": "list"} for name in ("stale", "replace", "trees")}
secret = {"secret_content": {"no_log": True}}
secret.update({name: {"type": "raw"} for name in ("dest", "mode", "content", "also", "beside")})
files = {"type": "list", "elements": "dict", "options": secret}
module = AnsibleModule({"files": files, **lists}, supports_check_mode=True)
given = module.params["files"]
texts = {each["dest"]: (each["mode"] or "0644", each["secret_content"] or each["content"]) for each in given}
kinds = {"/etc/trainyard/mirror/code.conf": "required", "/etc/nginx/sites-enabled/default": "mirror"}
kind = next((kinds[path] for path in kinds if path in texts), "node")
place = Path(os.environ["TOUCHED"], f"{kind}{'-check' if module.check_mode else ''}")
place.write_text(json.dumps({"files": texts, "stale": module.params["stale"]}))
module.exit_json(changed=True, changed_paths=[], steps=["Write"])
"""
UNIT = """
from ansible.module_utils.basic import AnsibleModule
names = {"name": {}, "newer_than": {"type": "list"}, "restart": {"type": "bool"}, "ready": {"type": "list"}}
module = AnsibleModule(names, supports_check_mode=True)
module.exit_json(changed=False)
"""
MIRROR = "/etc/containerd/certs.d/mirror.lan:5000/hosts.toml"
SITE: dict[str, Any] = {
    "supply": "mirror",
    "mirror_name": "mirror.lan",
    "mirror_address": "192.0.2.1",
    "bundle_artefacts": {},
    "containerd_sandbox_image": "pause",
    "containerd_package_version": "2.3.4-*",
}


def plays(nodes: str, *parts: str) -> list[dict[str, Any]]:
    """The three plays of site.yml that have to do with it."""

    def one(hosts: str, role: str, *entries: str) -> dict[str, Any]:
        tasks = [{"ansible.builtin.include_role": {"name": role, "tasks_from": entry}} for entry in entries]
        return {"hosts": hosts, "gather_facts": False, "tasks": tasks}

    made = {
        "mirror": one("mirror", "mirror", "credential_when_needed", "configure"),
        "nodes": one(nodes, "containerd", "configure"),
        "require": one("mirror", "mirror", "require"),
    }
    return [made[part] for part in parts or made]


def roles(folder: Path) -> Path:
    """The checkout with the two roles, whose modules write what they are given."""
    copy(folder)
    for name in ("mirror", "containerd"):
        shutil.copytree(ROOT / "roles" / name, folder / "roles" / name)
    # The task of main.yml alone, and the lookups of this machine's folder in the place of /etc.
    main = yaml.safe_load((ROOT / "roles/mirror/tasks/main.yml").read_text(encoding="utf-8"))
    (task,) = [each for each in main if each.get("ansible.builtin.include_tasks") == "credential.yml"]
    (folder / "roles/mirror/tasks/credential_when_needed.yml").write_text(yaml.safe_dump([task]), encoding="utf-8")
    for path in ("mirror/tasks/credential.yml", "containerd/tasks/credential.yml"):
        tasks = folder / "roles" / path
        read = json.dumps(yaml.safe_load(tasks.read_text(encoding="utf-8")))
        text, count = re.subn(r"/etc/(?=trainyard|containerd)", "{{ on_host }}/", read)
        assert count == 1, "the folder that it looks into"
        tasks.write_text(text, encoding="utf-8")
    put_fakes(folder, {"host_files": FILES, "systemd_unit": UNIT})
    return folder


def run(
    checkout: Path, folder: Path, *parts: str, nodes: str = "cluster", options: tuple[str, ...] = (), **site: Any
) -> tuple[int, dict[str, Any], str]:
    """Status, what was written, and the output of a run; a folder keeps the site's state."""
    pki = folder / "pki"
    if not pki.exists():
        pki.mkdir()
        for name in ("ca.crt", "push-ca.crt", "server.crt", "server.key"):
            (pki / name).write_text(name)
    place = folder / f"run{len(list(folder.iterdir()))}"
    place.mkdir()
    values = {**SITE, "mirror_pki_dir": str(pki), "on_host": str(folder / "host"), **site}
    (place / "vars.json").write_text(json.dumps(values))
    (checkout / "playbooks" / "part.yml").write_text(yaml.safe_dump(plays(nodes, *parts)), encoding="utf-8")
    status, touched, output = play(checkout, place, "playbooks/part.yml", "-e", f"@{place}/vars.json", *options)
    return status, {name: json.loads((place / "touched" / name).read_text()) for name in touched}, output


def credential(folder: Path) -> str:
    """The site's credential."""
    return (folder / "pki" / "code.credential").read_text()


def conf(folder: Path) -> str:
    """The file by which the mirror accepts it."""
    digest = hashlib.sha256(credential(folder).encode()).hexdigest()[:16]
    return f"/etc/trainyard/mirror/nodes/{digest}.conf"


def header(folder: Path) -> str:
    """Which nodes send."""
    return f"Basic {base64.b64encode(f'node:{credential(folder)}'.encode()).decode()}"


def sent(made: Mapping[str, Any]) -> list[Any]:
    """Mode and text of the file that has the header; no other has one."""
    files = made["node"]["files"]
    assert [path for path, (_, text) in files.items() if "header" in text] in ([], [MIRROR])
    return list(files[MIRROR])
