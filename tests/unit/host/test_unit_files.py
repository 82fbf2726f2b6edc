"""Files of units: a package's as it was installed, ours, or a stranger's."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainyard.host import host_findings
from trainyard.host.host_findings import flag_findings, judged, unit_findings, variable

UNIT = b"[Service]\nExecStart=/usr/bin/kubelet\n"
PATH = "/usr/lib/systemd/system/kubelet.service"
OURS = b"# Managed by trainyard\n[Service]\n"
HASHES = {PATH: hashlib.md5(UNIT).hexdigest()}


@pytest.mark.parametrize(
    ("path", "content", "packaged", "before"),
    [
        (PATH, UNIT, False, None),
        (PATH, UNIT + b"Nice=5\n", True, "edited"),
        # A file in /etc takes the place of the package's.
        ("/etc/systemd/system/kubelet.service", UNIT, False, "there"),
        ("/etc/systemd/system/kubelet.service.d/20.conf", OURS, False, None),
        ("/etc/systemd/system/kubelet.service.d/20.conf", b"[Service]\n", False, "there"),
        ("/usr/lib/systemd/system/kubelet.service.d/90.conf", b"[Service]\n", True, None),
    ],
)
def test_a_file(path: str, content: bytes, packaged: bool, before: str | None) -> None:
    found = judged(path, content, HASHES, lambda _: packaged)
    assert (found.before if found else None) == before


def test_a_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = tmp_path / "systemd/system/kubelet.service"
    drop_in = tmp_path / "systemd/system/kubelet.service.d/10-kubeadm.conf"
    mine = tmp_path / "etc/kubelet.service.d/99-mine.conf"
    for path in (unit, drop_in, mine):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(UNIT)
    digest = hashlib.md5(UNIT).hexdigest()
    (tmp_path / "kubelet.md5sums").write_text(
        f"{digest}  {str(unit)[1:]}\n{digest}  {str(drop_in)[1:]}\n{digest}  usr/bin/kubelet\n"
    )
    monkeypatch.setattr(host_findings, "INFO", str(tmp_path))
    monkeypatch.setattr(host_findings, "_is_packaged", lambda path: False)
    drop_ins = f"{drop_in} {mine} /usr/lib/systemd/system/service.d/10-all.conf"
    seen = {"LoadState": "loaded", "FragmentPath": str(unit), "DropInPaths": drop_ins}
    monkeypatch.setattr(host_findings, "properties_of", lambda *_: seen)
    assert [(each.subject, each.before) for each in unit_findings("kubelet.service", "kubelet")] == [
        (str(mine), "there")
    ]
    drop_in.write_bytes(b"[Service]\n")
    assert [each.before for each in unit_findings("kubelet.service", "kubelet")] == ["edited", "there"]
    seen["LoadState"] = "masked"
    assert not list(unit_findings("kubelet.service", "kubelet"))


@pytest.mark.parametrize(
    ("text", "value"),
    [("", ""), ("KUBELET_EXTRA_ARGS=\n", ""), ('KUBELET_EXTRA_ARGS=""\n', ""), ("# KUBELET_EXTRA_ARGS=-v=9\n", ""),
     ("KUBELET_EXTRA_ARGS=\nKUBELET_EXTRA_ARGS='--v=9'\n", "--v=9")],
)  # fmt: skip
def test_flags(text: str, value: str, tmp_path: Path) -> None:
    assert variable(text, "KUBELET_EXTRA_ARGS") == value
    path = tmp_path / "kubelet"
    path.write_text(text)
    assert [each.before for each in flag_findings(str(path), "KUBELET_EXTRA_ARGS")] == ([value] if value else [])
    assert not list(flag_findings(str(tmp_path / "none"), "KUBELET_EXTRA_ARGS"))


def test_dpkg_is_asked_by_both_names_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(argv: list[str], **_: object) -> SimpleNamespace:
        return SimpleNamespace(stdout="systemd: /lib/nowhere/x.conf\n" if "/lib/nowhere/x.conf" in argv else "")

    monkeypatch.setattr(host_findings, "run", answer)
    assert host_findings._is_packaged("/usr/lib/nowhere/x.conf")
    assert not host_findings._is_packaged("/etc/nowhere/x.conf")
