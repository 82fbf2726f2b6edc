"""The credential with which nodes pull code: made once, given to all nodes, required then, and never shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.playbooks.code_runs import conf, credential, header, roles, run, sent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return roles(tmp_path_factory.mktemp("checkout"))


def test_it_is_made_given_to_nodes_and_then_required_and_never_shown(checkout: Path, tmp_path: Path) -> None:
    status, made, output = run(checkout, tmp_path, options=("--diff", "-vvv"))
    assert status == 0, output
    assert re.fullmatch("[0-9a-fA-F]{64}", credential(tmp_path))
    assert (tmp_path / "pki" / "code.credential").stat().st_mode & 0o777 == 0o600
    # The mirror accepts it before any node has it.
    assert made["mirror"]["files"][conf(tmp_path)][0] == "0600"
    assert header(tmp_path) in made["mirror"]["files"][conf(tmp_path)][1]
    mode, text = sent(made)
    assert (mode, text.splitlines()[-1]) == ("0600", f'  Authorization = "{header(tmp_path)}"')
    assert made["required"]["files"].keys() == {"/etc/trainyard/mirror/code.conf", conf(tmp_path)}
    assert made["required"]["stale"] == ["/etc/trainyard/mirror/nodes/*.conf"]
    for secret in (credential(tmp_path), header(tmp_path).split()[1]):
        assert secret not in output
    # A second run makes no other.
    before = credential(tmp_path)
    status, made, output = run(checkout, tmp_path, "mirror")
    assert (status, credential(tmp_path)) == (0, before), output


def test_it_is_not_required_before_every_node_has_it(checkout: Path, tmp_path: Path) -> None:
    status, made, output = run(checkout, tmp_path, nodes="w1")
    assert (status, made.keys()) == (0, {"mirror", "node"}), output
    assert "does not require the credential for code images yet: cp1, w2 did not get it" in output


def test_a_lost_one_is_made_again_beside_the_one_before(checkout: Path, tmp_path: Path) -> None:
    run(checkout, tmp_path, "mirror")
    first = conf(tmp_path)
    (tmp_path / "pki" / "code.credential").unlink()
    # Looked at: nothing is made.
    status, made, output = run(checkout, tmp_path, options=("--check",))
    assert (status, made.keys()) == (0, {"mirror-check", "node-check"}), output
    assert not (tmp_path / "pki" / "code.credential").exists()
    status, made, output = run(checkout, tmp_path)
    assert status == 0, output
    assert conf(tmp_path) != first
    assert header(tmp_path) in sent(made)[1]
    # Credentials that the mirror has accepted go when all nodes have the new one.
    assert made["mirror"]["stale"] is None
    assert conf(tmp_path) in made["required"]["files"]


def test_a_part_of_a_site_does_not_take_it_from_a_node(checkout: Path, tmp_path: Path) -> None:
    """Such a run leaves out the mirror, whose role would make one."""
    there = tmp_path / "host" / "containerd" / "certs.d" / "mirror.lan:5000"
    status, made, output = run(checkout, tmp_path, "nodes", nodes="w1")
    assert (status, sent(made)[0]) == (0, "0644"), output
    there.mkdir(parents=True)
    (there / "hosts.toml").write_text('[header]\n  Authorization = "Basic eA=="\n')
    status, made, output = run(checkout, tmp_path, "nodes", nodes="w1")
    assert (status, made) == (2, {}), output
    assert "code.credential of this controller is missing or empty" in output


def test_the_schedule_is_refused_without_the_present_one(checkout: Path, tmp_path: Path) -> None:
    """Its controller makes nothing: it would take the header from the nodes, or give them an older one."""
    accepted = tmp_path / "host" / "trainyard" / "mirror" / "nodes"
    accepted.mkdir(parents=True)
    index = {"bundle_index": "https://192.0.2.1/index"}
    status, made, output = run(checkout, tmp_path, "mirror", **index)
    assert (status, (tmp_path / "pki" / "code.credential").exists()) == (0, False), output
    (accepted / "0123456789abcdef.conf").touch()
    for own in ("", "a" * 64):
        (tmp_path / "pki" / "code.credential").write_text(own)
        status, made, output = run(checkout, tmp_path, "mirror", **index)
        assert (status, made) == (2, {}), output
        assert "Run playbooks/reprovision.yml" in output
    (accepted / Path(conf(tmp_path)).name).touch()
    status, made, output = run(checkout, tmp_path, **index)
    assert (status, header(tmp_path) in sent(made)[1], "required" in made) == (0, True, True), output


def test_no_other_registry_gets_it(checkout: Path, tmp_path: Path) -> None:
    addresses = {"docker.io": "https://mirror.lan:5000/v2/docker.io", "gcr.io": "https://other.lan/v2/gcr.io"}
    status, made, output = run(checkout, tmp_path, containerd_registry_mirrors=addresses)
    assert status == 0, output
    assert "header" in sent(made)[1]
    assert made["node"]["files"]["/etc/containerd/certs.d/other.lan/hosts.toml"][0] == "0644"


def test_a_mirror_that_no_node_knows_by_its_name_requires_nothing(checkout: Path, tmp_path: Path) -> None:
    site = {"containerd_registry_mirrors": {"docker.io": "https://other.lan/v2/x"}}
    status, made, output = run(checkout, tmp_path, **site)
    assert (status, "required" in made) == (0, False), output
