"""An INI inventory and `-e name=value`, whose booleans and numbers are texts, as a user gives them."""

from __future__ import annotations

from pathlib import Path

from tests.unit.plugins.test_validate_site import validate


def test_texts_of_an_ini_inventory(root: Path, tmp_path: Path) -> None:
    """Rules take them for what they mean, and refuse those that Ansible's filter and its modules read differently."""
    groups = "[control_plane]\ncp1 ansible_host=cp1.lan\n[cluster:children]\ncontrol_plane\n[all:vars]\n"
    site = tmp_path / "hosts.ini"
    texts = "supply=vendors\nbase_swap_off=no\ncontrol_plane_schedulable=false\ndevice_plugin_replicas=4\n"
    site.write_text(f"{groups}{texts}kubernetes_serving_certificates=false\n")
    good = validate(root, site, "-e", "lab_managed=false verify_settle_timeout=0.5")
    assert good.returncode == 0, good.stdout + good.stderr
    site.write_text(f"{groups}{texts}kubernetes_serving_certificates=true\nefs_encrypted=y\n")
    bad = validate(
        root,
        site,
        "-e",
        "dashboard_exposure=node_port dashboard_token_hours=100000 dashboard_node_port=5 base_command_timeout=1e3",
    )
    for expected in (
        'host cp1 is "cp1.lan": reached by a name',
        'is "y": not true or false. Write true or false.',
        "variable dashboard_token_hours",
        "variable dashboard_node_port",
        'is "1e3": not a whole number',
    ):
        assert expected in bad.stdout, bad.stdout


def test_a_tag_with_which_nothing_would_run_is_refused(root: Path) -> None:
    bad = validate(root, root / "inventories" / "lab", "--tags", "containerd,validate")
    assert bad.returncode != 0 and "option --tags containerd is unknown" in bad.stdout, bad.stdout
    assert validate(root, root / "inventories" / "lab", "--tags", "validate").returncode == 0
