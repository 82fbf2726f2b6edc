"""site.yml, called for a part of a site or with a host that is not there: what is left out is never called good."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.playbooks.runs import copy, play, stubs

# Several seconds for each run of the whole site.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The playbooks, and roles that only leave a file named after their host; the verdict's says what it was given."""
    return stubs(copy(tmp_path_factory.mktemp("checkout")))


PROBED = {"cp1-probed", "w1-probed", "w2-probed"}


@pytest.mark.parametrize("playbook", ["site.yml", "verify.yml"])
def test_a_limit_without_the_controller_is_refused(checkout: Path, tmp_path: Path, playbook: str) -> None:
    status, touched, output = play(checkout, tmp_path, playbook, "--limit", "w1")
    assert (status, touched) == (2, set()), output
    assert "-e site_hosts=w1 instead" in output


def test_a_part_of_the_site_is_converged_and_all_of_it_judged(checkout: Path, tmp_path: Path) -> None:
    status, touched, output = play(checkout, tmp_path, "site.yml", "-e", "site_hosts=w1")
    assert (status, touched) == (0, {"w1", "localhost", "localhost-missing=-left_out=0"} | PROBED), output


def test_a_part_without_the_objects_of_the_cluster(checkout: Path, tmp_path: Path) -> None:
    """As a converge repairs a host: what is the cluster's own stays as it is, and is not judged."""
    arguments = ("-e", "site_hosts=w1", "-e", '{"site_objects": false}')
    status, touched, output = play(checkout, tmp_path, "site.yml", *arguments)
    assert (status, touched) == (0, {"w1", "localhost"}), output
    roles = ("bundle", "worker", "network", "metrics", "dashboard", "verify")
    assert [role for role in roles if f"TASK [{role} : Leave a file" in output] == ["bundle", "worker"]
    # Images are of the host, and are laid into it; the training is of the cluster.
    assert output.count("TASK [workloads : Leave a file") == 2


def test_the_objects_of_the_cluster_alone(checkout: Path, tmp_path: Path) -> None:
    """As a converge repairs them: a host that it has found down neither holds them up nor is called reached or lost."""
    arguments = ("-e", "site_hosts=localhost", "-e", '{"site_unready_hosts": ["w2"]}')
    status, touched, output = play(checkout, tmp_path, "site.yml", *arguments)
    assert (status, touched) == (0, {"localhost", "localhost-missing=-left_out=0"} | PROBED), output
    assert "waits without: w2." in output
    assert all(f"TASK [{role} : " in output for role in ("network", "metrics", "dashboard", "workloads"))


@pytest.mark.parametrize(
    ("values", "made"), [(("storage_backend=efs_mount", "efs_name=mine"), True), (("storage_backend=efs_csi",), False)]
)
def test_a_file_system_of_aws_is_made_where_the_site_names_one(
    checkout: Path, tmp_path: Path, values: tuple[str, ...], made: bool
) -> None:
    """A site may have one that is there already; then it is somebody else's."""
    arguments = [word for value in values for word in ("-e", value)]
    status, _, output = play(checkout, tmp_path, "site.yml", *arguments)
    assert status == 0, output
    roles = [role for role in ("base", "efs", "efs_mount", "storage") if f"TASK [{role} : " in output]
    assert roles == ["base", *(["efs"] if made else []), "efs_mount", "storage"]
    places = [output.index(f"TASK [{role} : ") for role in roles]
    assert places == sorted(places)
    # The mirror serves first; it requires the credential of code when nodes have it, and before anything runs.
    assert output.count("TASK [mirror : Leave a file") == 2
    asked = [output.index("TASK [containerd : "), output.rindex("TASK [mirror : "), output.index("TASK [workloads : ")]
    assert asked == sorted(asked)


def test_a_part_that_does_not_exist_is_refused(checkout: Path, tmp_path: Path) -> None:
    status, touched, output = play(checkout, tmp_path, "site.yml", "-e", "site_hosts=w3")
    assert (status, touched) == (2, set()), output
    assert "site_hosts is w3 and matches no host" in output


def test_a_host_that_is_not_reached_drops_out_and_the_verdict_names_it(checkout: Path, tmp_path: Path) -> None:
    away = tmp_path / "away.yml"
    away.write_text("all: {hosts: {w2: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1}}}", "utf-8")
    _, touched, output = play(checkout, tmp_path, "site.yml", "-i", str(away))
    judged = {"localhost", "localhost-missing=w2-left_out=0"}
    assert "waits without: w2." in output
    assert touched == {"m1", "cp1", "w1", "cp1-probed", "w1-probed"} | judged, output


@pytest.mark.parametrize("arguments", ["--start-at-task=Mark this host as reachable", "--skip-tags=always"])
def test_a_run_that_leaves_its_beginning_out_is_not_called_good(checkout: Path, tmp_path: Path, arguments: str) -> None:
    _, touched, output = play(checkout, tmp_path, "site.yml", arguments)
    verdicts = [name for name in touched if "left_out" in name]
    assert verdicts and all(not name.endswith("left_out=0") for name in verdicts), output
