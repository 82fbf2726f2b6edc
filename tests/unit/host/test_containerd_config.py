"""containerd's configuration in force, as `containerd config dump` of 2.3.4 shows it, against ours."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from trainyard.core.errors import CommandError
from trainyard.host import host_findings
from trainyard.host.host_findings import containerd_findings

OURS = """\
# Managed by trainyard
version = 3

[plugins.'io.containerd.cri.v1.runtime']
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]

[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = "runc"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
"""
DUMP = """\
version = 4
root = '/var/lib/containerd'

[plugins]
  [plugins.'io.containerd.cri.v1.runtime']
    enable_cdi = true
    cdi_spec_dirs = ['/etc/cdi', '/var/run/cdi']
    [plugins.'io.containerd.cri.v1.runtime'.containerd]
      default_runtime_name = 'runc'

      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes]
        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
          runtime_type = 'io.containerd.runc.v2'

          [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
            BinaryName = ''
            SystemdCgroup = true

  [plugins.'io.containerd.nri.v1.nri']
    enable_cdi = false
"""
CGROUP = "containerd plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options.SystemdCgroup"


@pytest.mark.parametrize(
    ("stranger", "dump", "expected"),
    [
        (False, DUMP, []),
        # A stranger without a file here, such as one that edits ours, is its role's matter.
        (False, DUMP.replace("SystemdCgroup = true", "SystemdCgroup = false"), []),
        (True, DUMP, [("99-mine.toml", "there")]),
        (True, DUMP.replace("SystemdCgroup = true", "SystemdCgroup = false"), [
            ("99-mine.toml", "there"), (CGROUP, "false"),
        ]),
        (True, DUMP.replace("'runc'", "'kata'"), [
            ("99-mine.toml", "there"),
            ("containerd plugins.'io.containerd.cri.v1.runtime'.containerd.default_runtime_name", '"kata"'),
        ]),
        (True, "", [
            ("99-mine.toml", "there"),
            ("containerd configuration", "cannot be read with /etc/containerd/config.toml: worse"),
        ]),
    ],
)  # fmt: skip
def test_drop_ins(
    stranger: bool, dump: str, expected: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "10-trainyard.toml").write_text(OURS)
    if stranger:
        (tmp_path / "99-mine.toml").write_text("version = 3\n")

    def answer(*_: object, **__: object) -> SimpleNamespace:
        assert stranger, "containerd is asked only where there is a stranger's file"
        if not dump:
            raise CommandError("bad\nworse")
        return SimpleNamespace(stdout=dump)

    monkeypatch.setattr(host_findings, "run", answer)
    found = [
        (each.subject.replace(f"{tmp_path}/", ""), each.before) for each in containerd_findings(f"{tmp_path}/*.toml")
    ]
    assert found == expected
