"""host_files: a main file is judged together with what it imports, and the file at fault is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.host.config_files import File, HostFiles
from trainyard.host.ownership import MARKER
from trainyard.host.validation import Tree

READER = r"""#!/usr/bin/env python3
# As containerd 2.3.4 judges versions: a drop-in file may not have a higher one than its main file.
import glob, re, sys
root = open(sys.argv[1]).read()
version = int(re.search(r"^version = (\d+)$", root, re.M)[1])
if version > 4:
    sys.exit(f"{sys.argv[1]}: expected version 4 or lower")
names = []
for name in sorted(glob.glob(re.search(r'^imports = \["(.*)"\]$', root, re.M)[1])):
    text = open(name).read()
    found = int(re.search(r"^version = (\d+)$", text, re.M)[1])
    if found > version:
        sys.exit(f"drop-in config version {found} higher than root config version {version}")
    names += re.findall(r"^\[(.*)\]$", text, re.M)
if len(names) > len(set(names)):
    sys.exit("a table is there twice")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conf.d").mkdir()
    reader = tmp_path / "reader"
    reader.write_text(READER)
    reader.chmod(0o755)
    return tmp_path


def site(folder: Path, version: int, **more: str) -> HostFiles:
    """The files that are wanted: a main file, and drop-in files of version 3."""
    parts = f"{folder}/conf.d/*.toml"
    main = f'# {MARKER}\nversion = {version}\nimports = ["{parts}"]\n'
    also = [main.replace(f"version = {version}", "version = 3")]
    drop_ins = {"10-trainyard": "[ours]\n", **more}
    files = [
        File(str(folder / "config.toml"), main, also=also),
        *(File(f"{folder}/conf.d/{name}.toml", f"# {MARKER}\nversion = 3\n{text}") for name, text in drop_ins.items()),
    ]
    return HostFiles(files, trees=[Tree(files[0].path, parts, [str(folder / "reader"), "%s"])])


def test_a_new_host_gets_version_4_beside_a_drop_in_of_version_4(folder: Path) -> None:
    (folder / "conf.d/99-nvidia.toml").write_text("version = 4\n[nvidia]\n")
    site(folder, 4).plan().execute()
    assert "version = 4" in (folder / "config.toml").read_text()
    assert not site(folder, 4).plan().changed


def test_a_host_in_use_keeps_version_3(folder: Path) -> None:
    site(folder, 3).plan().execute()
    assert not site(folder, 4).plan().changed


def test_the_drop_in_at_fault_is_named(folder: Path) -> None:
    site(folder, 3).plan().execute()
    (folder / "conf.d/20-mine.toml").write_text("version = 3\n[mine]\n")
    (folder / "conf.d/99-nvidia.toml").write_text("version = 4\n[nvidia]\n")
    before = sorted(path.name for path in (folder / "conf.d").iterdir())
    with pytest.raises(TrainyardError) as refusal:
        site(folder, 4, **{"50-more": "[more]\n"}).plan()
    said = str(refusal.value)
    assert f"refuses {folder}/conf.d/99-nvidia.toml: " in said and "higher than root config version 3" in said
    assert "this project does not manage it" in said and "variables" not in said
    assert sorted(path.name for path in (folder / "conf.d").iterdir()) == before


def test_a_text_of_ours_that_is_refused_points_at_the_variables(folder: Path) -> None:
    with pytest.raises(TrainyardError, match=r"refuses .*/config\.toml: .*variables") as refusal:
        site(folder, 5).plan()
    assert "trainyard-" not in str(refusal.value).replace("10-trainyard", ""), "no name of a temporary file"


def test_files_that_are_refused_only_together(folder: Path) -> None:
    (folder / "conf.d/20-mine.toml").write_text("version = 3\n[ours]\n")
    with pytest.raises(TrainyardError, match=r"refuses .*/config\.toml: .*a table is there twice"):
        site(folder, 4).plan()


def test_a_stale_file_is_judged_as_gone(folder: Path) -> None:
    site(folder, 3, **{"50-more": "[more]\n"}).plan().execute()
    (folder / "conf.d/90-mine.toml").write_text("version = 3\n[more]\n")
    wanted = site(folder, 3)
    wanted.stale = [f"{folder}/conf.d/*.toml"]
    wanted.plan().execute()
    assert sorted(path.name for path in (folder / "conf.d").iterdir()) == ["10-trainyard.toml", "90-mine.toml"]


def test_before_the_program_is_installed_it_is_said(folder: Path) -> None:
    wanted = site(folder, 4)
    (folder / "reader").unlink()
    assert wanted.plan().changed
    assert wanted.not_validated == [f"{folder}/config.toml", f"{folder}/conf.d/10-trainyard.toml"]
