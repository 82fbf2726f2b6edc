"""apt's settings of the role base, read by apt itself, with a proxy on this machine."""

from __future__ import annotations

import base64
import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from checkout import ROOT, read_yaml

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="not installed: apt")

DIRECT = read_yaml(ROOT / "roles/base/vars/main.yml")["__base_proxy_direct"]
TEMPLATE = (ROOT / "roles/base/templates/apt.proxy.j2").read_text(encoding="utf-8")
NO_PROXY = ".svc,10.244.0.0/16,127.0.0.1,::1,mirror.example"


def rendered(**proxy: Any) -> str:
    variables = {
        "base_proxy": proxy,
        "__base_proxy": {"NO_PROXY": NO_PROXY},
        "__base_proxy_direct": trust_as_template(DIRECT),
    }
    return str(Templar(loader=DataLoader(), variables=variables).template(trust_as_template(TEMPLATE)))


@pytest.fixture
def proxy() -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """A proxy that refuses everything: its port, and what it was asked for, with the login."""
    seen: list[tuple[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((f"{self.command} {self.path}", self.headers.get("Proxy-Authorization", "")))
            self.send_error(404)

        do_CONNECT = do_GET

        def log_message(self, *arguments: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1], seen
        server.shutdown()


def update(folder: Path, settings: str, *sources: str) -> None:
    """Run `apt-get update` with these settings alone, on these sources."""
    for name in ("parts", "lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "parts/zz-trainyard-proxy").write_text(settings)
    (folder / "parts/zz-trainyard-proxy").chmod(0o600)
    (folder / "sources.list").write_text("".join(f"deb [trusted=yes] {each} x main\n" for each in sources))
    (folder / "apt.conf").write_text(
        f'Dir::Etc::parts "{folder}/parts"; Dir::Etc::main "/dev/null"; Dir::Etc::sourceparts "/dev/null";\n'
        f'Dir::Etc::sourcelist "{folder}/sources.list";\n'
        f'Dir::State::lists "{folder}/lists"; Dir::Cache "{folder}/cache";\n'
        'APT::Sandbox::User "root"; Acquire::Retries "0"; Acquire::Languages "none";\n'
    )
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment = {**kept, "APT_CONFIG": str(folder / "apt.conf")}
    subprocess.run(["apt-get", "update"], env=environment, capture_output=True, timeout=60, check=False)


def test_apt_asks_the_proxy_with_its_login_and_never_for_the_mirror(
    proxy: tuple[int, list[tuple[str, str]]], tmp_path: Path
) -> None:
    port, seen = proxy
    url = f"http://user:s%2Fcret@127.0.0.1:{port}"
    sources = ("http://one.example/debian", "https://two.example/debian", "https://mirror.example/debian")
    update(tmp_path, rendered(http=url, https=url), *sources, "http://mirror.example/debian")
    targets = {target for target, _ in seen}
    assert "GET http://one.example/debian/dists/x/InRelease" in targets
    assert "CONNECT two.example:443" in targets
    assert not [target for target in targets if "mirror.example" in target]
    assert {login for _, login in seen} == {"Basic " + base64.b64encode(b"user:s/cret").decode()}


def test_only_names_and_addresses_become_settings() -> None:
    assert rendered(https="http://p:1") == (
        '// Managed by trainyard\nAcquire::https::Proxy "http://p:1";\n'
        'Acquire::https::Proxy::127.0.0.1 "DIRECT";\nAcquire::https::Proxy::mirror.example "DIRECT";\n'
    )
