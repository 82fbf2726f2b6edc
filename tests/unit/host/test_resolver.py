"""The resolver file for pods: per node, and never one that names the pod itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.host import resolver
from trainyard.host.resolver import DEFAULT, RESOLVED, choose, problems


def put(root: Path, path: str, text: str) -> Path:
    (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
    (root / path.lstrip("/")).write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("configured", "state", "file", "chosen"),
    [
        ("", "active", True, RESOLVED),
        ("", "inactive", True, DEFAULT),
        ("", "active", False, DEFAULT),
        ("/etc/kubernetes/resolv.conf", "active", True, "/etc/kubernetes/resolv.conf"),
    ],
)
def test_the_file_of_this_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configured: str, state: str, file: bool, chosen: str
) -> None:
    monkeypatch.setattr(resolver, "properties_of", lambda *_: {"ActiveState": state})
    if file:
        put(tmp_path, RESOLVED, "nameserver 10.0.0.2\n")
    assert choose(configured, tmp_path) == chosen


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("nameserver 10.0.0.2\nsearch example.org\n", ""),
        ("# nameserver 127.0.0.1\nnameserver\n", ""),
        ("", ""),
        ("nameserver 127.0.0.1\n", "127.0.0.1"),
        ("nameserver  127.0.0.53\noptions edns0\n", "127.0.0.53"),
        ("nameserver ::1\nnameserver 10.0.0.2\n", "::1"),
        ("nameserver fe80::1%eth0\n", ""),
        ("nameserver nonsense\n", ""),
    ],
)
def test_a_resolver_on_the_host_itself_is_refused(tmp_path: Path, text: str, addresses: str) -> None:
    found = problems(DEFAULT, put(tmp_path, DEFAULT, text))
    assert [each.code for each in found] == (["local_resolver"] if addresses else [])
    assert not found or f"the resolver {addresses} of /etc/resolv.conf" in found[0].cause
