"""host_files with apt_sources_once: which entries name a wanted repository, in whichever spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.host.test_apt_sources import Host, keys, ours

__all__ = ["keys"]


@pytest.mark.parametrize(
    "text",
    [
        "deb [signed-by={}] https://example.com/stable/deb/$(ARCH) /\n",
        "deb [signed-by={}] https://example.com/stable/deb/amd64/ ./\n",
        "deb [ signed-by={} ] https://Example.com:443/stable/deb/amd64 /\n",
    ],
)
def test_a_flat_repository_is_known_in_any_spelling(tmp_path: Path, keys: dict[str, Path], text: str) -> None:
    wanted = ours(keys["vendor"], "https://example.com/stable/deb/amd64", "/", "")
    host = Host(tmp_path / "used", nvidia_list=text.format(keys["vendor"]))
    assert host.run(wanted) == ([], False)
    host = Host(tmp_path / "aside", nvidia_list=text.format(keys["other"]))
    assert len(host.run(wanted)[0]) == 1
    assert host.releases() == ["https://example.com/stable/deb/amd64"]


@pytest.mark.parametrize(
    "text",
    [
        "# deb [signed-by=/x] https://download.docker.com/linux/debian bookworm stable\n",
        "Types: deb\nURIs: https://download.docker.com/linux/debian\nSuites: bookworm\nEnabled: no\n",
        "deb [signed-by=/x] https://download.docker.com/linux/debian trixie stable\n",
        "deb cdrom:[Debian GNU/Linux 12 _Bookworm_]/ bookworm main\n",
        "not a source \x00 at all [\n deb [ bookworm\n",
    ],
)
def test_what_is_no_entry_of_ours_is_left_alone(tmp_path: Path, keys: dict[str, Path], text: str) -> None:
    for name in ("a_list", "a_sources"):
        host = Host(tmp_path / name, **{name: text})
        assert host.run(ours(keys["vendor"])) == ([], True)
        assert host.path(name).read_text() == text
