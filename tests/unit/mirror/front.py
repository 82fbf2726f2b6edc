"""The mirror's registry as its role configures it: the real nginx before the real docker-registry."""

from __future__ import annotations

import base64
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template

from tests.conftest import ROOT
from tests.unit.certificates import self_signed
from tests.unit.registries import free_port

init_plugin_loader()
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
SECRET = "5e" * 32
ROLE = ROOT / "roles" / "mirror"
MAIN = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


@dataclass(frozen=True)
class Answer:
    """Status, headers and body of an answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


@dataclass
class Front:
    """A running mirror.

    :param folder: its files; `etc` is /etc/trainyard/mirror.
    :param values: variables of the role.
    """

    port: int
    folder: Path
    values: dict[str, Any]
    nginx: subprocess.Popen[bytes] | None = None
    _contexts: dict[bool, ssl.SSLContext] = field(default_factory=dict)

    @property
    def etc(self) -> Path:
        """The folder that is /etc/trainyard/mirror on a mirror."""
        return self.folder / "etc"

    def rendered(self, template: str, **values: str) -> str:
        """A template of the role, with this folder's paths."""
        known = {key: _trusted(value) for key, value in {**self.values, **values}.items()}
        text = trust_as_template((ROLE / "templates" / template).read_text(encoding="utf-8"))
        made = str(Templar(loader=DataLoader(), variables=known).template(text))
        for path, here in (("/etc/trainyard/mirror", self.etc), ("/var/lib/docker-registry", self.folder / "storage")):
            made = made.replace(path, str(here))
        return made

    def accept(self, secret: str, name: str = "a") -> None:
        """Accept a credential of nodes, as tasks/configure.yml does."""
        (self.etc / "nodes").mkdir(exist_ok=True)
        (self.etc / "nodes" / f"{name}.conf").write_text(self.rendered("node.conf.j2", __mirror_credential=secret))

    def require(self, **values: str) -> None:
        """Require the credential, as tasks/require.yml does."""
        (self.etc / "code.conf").write_text(self.rendered("code.conf.j2", **values))

    def start(self) -> None:
        """Start nginx with the present files, or start it again."""
        self.stop()
        (self.folder / "site.conf").write_text(
            self.rendered("nginx.conf.j2").replace("listen 443", f"listen 127.0.0.1:{free_port()}")
        )
        # As root its workers would be of another user, who may not enter this folder.
        user = "user root root;" if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(MAIN.format(folder=self.folder, user=user))
        self.nginx = subprocess.Popen(
            [str(NGINX), "-p", str(self.folder), "-e", f"{self.folder}/error.log", "-c", f"{self.folder}/nginx.conf"]
        )
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", self.port)) == 0)

    def stop(self) -> None:
        """Stop nginx with its workers."""
        if self.nginx:
            self.nginx.terminate()
            self.nginx.wait(20)
            self.nginx = None

    def ask(self, path: str, method: str = "GET", *, secret: str = "", pushes: bool = False, **headers: str) -> Answer:
        """Send one request with the path as it is given.

        :param secret: password of the credential to send.
        :param pushes: show the certificate that may push.
        """
        if secret:
            headers["Authorization"] = f"Basic {base64.b64encode(f'node:{secret}'.encode()).decode()}"
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=self._context(pushes))
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def _context(self, pushes: bool) -> ssl.SSLContext:
        if pushes not in self._contexts:
            context = ssl.create_default_context(cafile=str(self.etc / "server.crt"))
            if pushes:
                context.load_cert_chain(self.folder / "push.crt", self.folder / "push.key")
            self._contexts[pushes] = context
        return self._contexts[pushes]


def wait_for(there: Callable[[], bool]) -> None:
    """Wait up to 20 seconds for a server."""
    deadline = time.monotonic() + 20
    while not there() and time.monotonic() < deadline:
        time.sleep(0.05)


def _trusted(value: Any) -> Any:
    return trust_as_template(value) if isinstance(value, str) else value


@contextmanager
def mirror(folder: Path, **settings: str) -> Iterator[Front]:
    """A mirror that accepts no credential yet and requires none.

    :param settings: variables of the role or of the site.
    """
    port = free_port()
    values = {
        **yaml.safe_load((ROLE / "vars" / "main.yml").read_text()),
        "mirror_name": "mirror.lan",
        "mirror_registry_port": port,
        "__mirror_apt": str(folder / "apt"),
        "__mirror_socket": str(folder / "registry.sock"),
        **settings,
    }
    front = Front(port, folder, values)
    front.etc.mkdir()
    for name, place in (("server", front.etc), ("push", folder)):
        certificate, key = self_signed()
        (place / f"{name}.crt").write_text(certificate)
        (place / f"{name}.key").write_text(key)
    shutil.copy(folder / "push.crt", front.etc / "push-ca.crt")
    (folder / "registry.yml").write_text(front.rendered("registry.yml.j2"))
    with subprocess.Popen(["docker-registry", "serve", str(folder / "registry.yml")], stderr=subprocess.DEVNULL) as of:
        try:
            wait_for((folder / "registry.sock").exists)
            front.start()
            yield front
        finally:
            front.stop()
            of.kill()
