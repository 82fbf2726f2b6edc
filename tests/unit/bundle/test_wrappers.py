"""The wrapper modules: the ones that share their compiled dependencies with Kubernetes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

WRAPPERS = Path(__file__).parents[3] / "roles/bundle/files/go"


def required(wrapper: str) -> dict[str, str]:
    """Versions of a wrapper's modules by path."""
    text = (WRAPPERS / wrapper / "go.mod").read_text()
    requires = "".join(re.findall(r"^require \((.*?)^\)", text, re.MULTILINE | re.DOTALL))
    return dict(re.findall(r"^\t(\S+) (\S+)", requires, re.MULTILINE))


# What k8s.io is made from. Other modules that both have, such as those for Windows, do not matter.
SHARED = ("k8s.io/", "sigs.k8s.io/", "golang.org/x/", "google.golang.org/", "go.opentelemetry.io/")


@pytest.mark.parametrize("wrapper", ["crictl", "jobset"])
def test_what_go_compiled_for_kubernetes_serves(wrapper: str) -> None:
    """Go's cache knows a package by its module's version and all that it is made from: one other version here, and all
    of k8s.io is compiled again. Kubernetes requires some of its own parts as v0.0.0, which no other wrapper can."""
    theirs = required("kubernetes")
    ours = {path: version for path, version in required(wrapper).items() if path.startswith(SHARED)}
    assert len(ours) > 20
    different = {path for path, version in ours.items() if theirs.get(path, version) not in (version, "v0.0.0")}
    assert different == set()


def test_coredns_has_the_plugins_of_a_clusters_corefile() -> None:
    """The ones of kubeadm's own Corefile, and what sites commonly add to it."""
    main = (WRAPPERS / "coredns/main.go").read_text()
    found = set(re.findall(r'_ "github.com/coredns/coredns/plugin/(\w+)"', main))
    kubeadm = {
        "errors",
        "health",
        "ready",
        "kubernetes",
        "metrics",
        "forward",
        "cache",
        "loop",
        "reload",
        "loadbalance",
    }
    assert found == kubeadm | {"hosts", "log", "rewrite", "template"}
