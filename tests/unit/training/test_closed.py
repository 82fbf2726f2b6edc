"""Networks that an import never reaches, whatever its URL or the server's name says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.test_data_import import JOB, POLICY, described
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api, KubeError
from trainyard.trainings.data_import import ALWAYS, DataImport, around, networks

PLACE = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
CONFIGURED = """apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16,fd01::/48
  serviceSubnet: "10.96.0.0/16"
"""


def kubeadm(text: Any) -> dict[str, Any]:
    return {PLACE: {"metadata": {"name": "kubeadm-config"}, "data": {"ClusterConfiguration": text}}}


def egress(url: str, closed: tuple[str, ...]) -> list[Any]:
    run, wanted = described(url=url)
    return list(around(run, wanted, closed)[0]["spec"]["egress"][0]["to"])


def test_a_name_opens_the_way_to_all_but_these() -> None:
    four, six = egress("https://example.org/x", networks(Api(ApiServer(kubeadm(CONFIGURED)))))
    assert four["ipBlock"] == {
        "cidr": "0.0.0.0/0",
        "except": ["169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "10.244.0.0/16", "10.96.0.0/16"],
    }
    assert six["ipBlock"] == {"cidr": "::/0", "except": ["fe80::/10", "fd00:ec2::254/128", "fd01::/48"]}


@pytest.mark.parametrize("text", [None, 7, [], "", "podSubnet: x\nserviceSubnet: 10.0.0.0/99\n", "\x00" * 10])
def test_what_is_no_configuration_leaves_the_others_closed(text: Any) -> None:
    assert networks(Api(ApiServer(kubeadm(text)))) == ALWAYS


def test_who_may_not_read_it_imports_all_the_same_and_no_answer_is_an_error() -> None:
    def answering(status: int) -> Api:
        def transport(method: str, path: str, *_: Any) -> tuple[int, str]:
            return (status, "{}") if path == PLACE else ApiServer({})(method, path, [], None, "")

        return Api(transport)

    assert networks(answering(403)) == ALWAYS
    with pytest.raises(KubeError):
        networks(answering(500))


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "10.244.3.4", "10.96.0.1", "[fd01::5]"],
)
def test_an_address_in_one_of_them_is_refused_before_anything_is_made(host: str) -> None:
    server = ApiServer(kubeadm(CONFIGURED))
    with pytest.raises(TrainyardError, match="which imports must not reach"):
        DataImport(Api(server), *described(url=f"http://{host}/latest/meta-data"), print).bring()
    assert not {JOB, POLICY} & server.objects.keys()


def test_another_address_is_the_only_one() -> None:
    assert egress("https://10.0.0.1/x", ALWAYS) == [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
