"""The certificate of metrics-server: made once, left alone while it is sound, renewed before it ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from tests.unit.playbooks.runs import ROOT, copy, play

pytestmark = pytest.mark.slow

FAKE = """
import json, os
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
names = {"kubeconfig": {}, "definitions": {"type": "list"}, "record": {}, "secrets": {"type": "list"}}
module = AnsibleModule(names, supports_check_mode=True)
Path(os.environ["TOUCHED"], "applied").write_text(json.dumps(module.params))
module.exit_json(changed=False)
"""
# The role's first task asks the cluster how its kubelets serve; this is its answer.
PLAY = {
    "hosts": "localhost",
    "gather_facts": False,
    "vars": {
        "site_dir": "{{ lookup('ansible.builtin.env', 'TOUCHED') | dirname }}/site",
        "metrics_kubeconfig": "/nonexistent",
        "metrics_image": "metrics-server:v1",
        "supply": "mirror",
        "__metrics_kubelet_config": {"resources": [{"data": {"kubelet": "serverTLSBootstrap: true"}}]},
    },
    "tasks": [{"ansible.builtin.include_role": {"name": "metrics"}}],
}


@pytest.fixture
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy(tmp_path_factory.mktemp("checkout"))
    role = folder / "roles" / "metrics"
    shutil.copytree(ROOT / "roles" / "metrics", role)
    tasks = yaml.safe_load((role / "tasks" / "main.yml").read_text(encoding="utf-8"))
    assert "kubernetes.core.k8s_info" in tasks[0]
    (role / "tasks" / "main.yml").write_text(yaml.safe_dump(tasks[1:]), encoding="utf-8")
    (folder / "library" / "kube_apply.py").write_text(FAKE, encoding="utf-8")
    return folder


def run(checkout: Path, folder: Path, number: int, *arguments: str) -> tuple[Any, str]:
    """What was applied, and the output of one run of the role over the same site's folder."""
    (checkout / "playbooks" / "metrics.yml").write_text(yaml.safe_dump([PLAY]), encoding="utf-8")
    place = folder / str(number)
    place.mkdir()
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (place / "site").symlink_to(site)
    status, touched, output = play(checkout, place, "playbooks/metrics.yml", *arguments)
    assert touched == {"applied"}, (status, output)
    return json.loads((place / "touched" / "applied").read_text(encoding="utf-8")), output


def test_made_once_left_alone_and_renewed(checkout: Path, tmp_path: Path) -> None:
    path = tmp_path / "site" / "metrics" / "server.crt"
    planned, _ = run(checkout, tmp_path, 0, "--check")
    assert planned["record"] == "metrics" and not path.exists()
    # One that ends within 30 days.
    run(checkout, tmp_path, 1, "-e", "metrics_certificate_days=10")
    soon = path.read_bytes()
    applied, _ = run(checkout, tmp_path, 2)
    made = path.read_bytes()
    assert made != soon and (path.parent / "server.key").stat().st_mode & 0o777 == 0o600
    again, output = run(checkout, tmp_path, 3)
    assert path.read_bytes() == made and again["definitions"] == applied["definitions"] and " changed=0 " in output
    (service,) = [each for each in applied["definitions"] if each["kind"] == "APIService"]
    assert "insecureSkipTLSVerify" not in service["spec"]
    names = x509.load_pem_x509_certificate(made).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == ["metrics-server.kube-system.svc"]
    assert [each["name"] for each in applied["secrets"]] == ["metrics-server-tls"]
    assert "PRIVATE KEY" not in json.dumps(applied)
