"""Proxies: of modules that fetch, of programs that call the API server, and those that the files of a host name."""

from __future__ import annotations

import http.server
import os
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.core import proxy
from trainyard.core.command import run

URL = "http://user:s%40cret@proxy.example.org:3128"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore all proxies of this process afterwards."""
    for name in proxy.NAMES:
        monkeypatch.setenv(name, "before")
        monkeypatch.delenv(name)
        monkeypatch.setenv(name.upper(), "before")
        monkeypatch.delenv(name.upper())


def proxies() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.lower() in proxy.NAMES}


def test_a_module_uses_the_proxy_of_the_site_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://other")
    monkeypatch.setenv("https_proxy", "http://other")
    proxy.use({"HTTP_PROXY": URL, "NO_PROXY": "a,b"})
    assert proxies() == {"HTTP_PROXY": URL, "http_proxy": URL, "NO_PROXY": "a,b", "no_proxy": "a,b"}


def test_without_a_proxy_of_the_site_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://other")
    proxy.use({})
    assert proxies() == {"https_proxy": "http://other"}


@pytest.mark.parametrize(("name", "kept"), [("kubeadm", 0), ("kubectl", 0), ("skopeo", 8)])
def test_programs_of_the_api_inherit_no_proxy(
    name: str, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kubeadm copies a proxy of its environment into static pods."""
    proxy.use({"HTTP_PROXY": URL, "HTTPS_PROXY": URL, "NO_PROXY": "a", "ALL_PROXY": URL})
    monkeypatch.setenv("OTHER", "kept")
    (tmp_path / name).write_text("#!/bin/sh\nenv\n")
    (tmp_path / name).chmod(0o755)
    for program in (str(tmp_path / name), name):
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        lines = run([program], timeout=10).stdout.splitlines()
        assert len([each for each in lines if each.partition("=")[0].lower() in proxy.NAMES]) == kept
        assert "OTHER=kept" in lines


@pytest.fixture
def asked() -> Iterator[tuple[int, list[str]]]:
    """A proxy on this machine that is also a server: its port, and the targets of its requests."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1], seen
        server.shutdown()


def test_a_real_proxy_is_asked_except_for_the_exceptions(asked: tuple[int, list[str]]) -> None:
    port, seen = asked
    proxy.use({"HTTP_PROXY": f"http://127.0.0.1:{port}", "NO_PROXY": "127.0.0.1,.svc"})
    fetch = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5).read()"
    run([sys.executable, "-c", fetch, "http://vendor.example/a"], timeout=30)
    run([sys.executable, "-c", fetch, f"http://127.0.0.1:{port}/b"], timeout=30)
    assert seen == ["http://vendor.example/a", "/b"]
    assert urllib.request.proxy_bypass("kubernetes.default.svc")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (URL, "http://***@proxy.example.org:3128"),
        ("http://user:p@ss/word@proxy:3128/", "http://***@proxy:3128"),
        ("user:secret@proxy:3128", "***@proxy:3128"),
        ("user:secret://x@proxy", "***@proxy"),
        ("socks5h://proxy:1080", "socks5h://proxy:1080"),
        ("http://proxy:3128/?key=secret", "http://proxy:3128"),
        ("http://pro\x1b[2Jxy\n:3128", "http://proxy :3128"),
    ],
)
def test_a_proxy_is_shown_without_its_login(url: str, shown: str) -> None:
    assert proxy.shown(url) == shown


FILES = {
    "etc/environment": f"# https_proxy=http://old\nPATH=/usr/bin\nhttps_proxy=\"{URL}\"\nno_proxy=localhost\n",
    "etc/systemd/system.conf": "[Manager]\n#DefaultEnvironment=HTTP_PROXY=http://old\n",
    "etc/systemd/system.conf.d/proxy.conf": '[Manager]\nDefaultEnvironment="A=b" "HTTPS_PROXY=http://one:80" C=d\n',
    "etc/systemd/system.conf.d/other.txt": "DefaultEnvironment=HTTPS_PROXY=http://old\n",
    "etc/apt/apt.conf": 'Acquire::http::Proxy "DIRECT";\nAcquire::https::Proxy "false";\n',
    "etc/apt/apt.conf.d/10proxy": '// Acquire::http::Proxy "http://old";\nAcquire::http::Proxy "http://two:3142";\n',
    "etc/apt/apt.conf.d/20braces": 'Acquire {\n  https {\n    Proxy "http://three:80/";\n  };\n};\n',
    "etc/apt/apt.conf.d/30host": 'Acquire::http::Proxy::a.example.org "http://old";\n',
    "etc/apt/apt.conf.d/zz-trainyard-proxy": 'Acquire::http::Proxy "http://ours";\n',
}  # fmt: skip


def test_files_of_a_host_that_name_a_proxy(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "etc/apt/apt.conf.d/folder").mkdir()
    (tmp_path / "etc/apt/apt.conf.d/40bytes").write_bytes(b'\xff Acquire::http::Proxy "http://\xff:1";')
    assert proxy.of_files(str(tmp_path)) == {
        "/etc/environment": "http://***@proxy.example.org:3128",
        "/etc/systemd/system.conf.d/proxy.conf": "http://one:80",
        "/etc/apt/apt.conf.d/10proxy": "http://two:3142",
        "/etc/apt/apt.conf.d/20braces": "http://three:80",
        "/etc/apt/apt.conf.d/40bytes": "http://\N{REPLACEMENT CHARACTER}:1",
    }
    assert proxy.of_files(str(tmp_path / "none")) == {}


def test_a_proxy_of_an_environment() -> None:
    assert proxy.of_environment({"NO_PROXY": "a", "HTTPS_PROXY": "", "https_proxy": URL}) == proxy.shown(URL)
    assert proxy.of_environment({"NO_PROXY": "a", "HOME": "/root"}) == ""
