"""Flags that a living cluster may lack: no drift where one is missing, drift where it says something else."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.core.new_clusters import as_made, lines_as_made

FLAG = {"name": "kubelet-certificate-authority", "value": "/etc/kubernetes/pki/ca.crt"}
OTHER = {"name": "profiling", "value": "false"}


def document(*flags: Any) -> dict[str, Any]:
    return {"kind": "ClusterConfiguration", "apiServer": {"extraArgs": list(flags)}}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (document(OTHER), document(OTHER)),
        (document(), document(OTHER)),
        (document(OTHER, {**FLAG, "value": "/tmp/ca.crt"}), document(OTHER, FLAG)),
        ({}, document(OTHER)),
        ({"apiServer": None}, document(OTHER)),
    ],
)
def test_what_the_cluster_lacks_is_not_asked_for(live: Any, expected: Any) -> None:
    assert as_made(document(OTHER, FLAG), live) == expected


@pytest.mark.parametrize("wanted", [{}, {"kind": "KubeletConfiguration"}, {"apiServer": {}}, None])
def test_another_document_comes_back_as_it_is(wanted: Any) -> None:
    assert as_made(wanted, {}) == wanted


POD = """\
  - command:
    - kube-apiserver
    - --kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt
    - --profiling=false
"""
OLD = POD.replace("    - --kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt\n", "")


@pytest.mark.parametrize(
    ("live", "expected"), [(POD, POD), (OLD, OLD), (POD.replace("/etc/kubernetes/pki", "/tmp"), POD)]
)
def test_the_text_of_a_static_pod(live: str, expected: str) -> None:
    assert lines_as_made(POD, live) == expected
