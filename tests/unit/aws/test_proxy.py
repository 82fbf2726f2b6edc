"""boto3 behind the site's proxy: AWS's API by the proxy, the metadata of an instance without it."""

from __future__ import annotations

import os

import pytest
from botocore.utils import get_environ_proxies

from trainyard.aws import client
from trainyard.core import proxy
from trainyard.core.errors import TrainyardError
from trainyard.site.proxies import environment, exceptions

URL = "http://user:secret@proxy.example.org:3128"


def test_the_api_by_the_proxy_and_the_metadata_without(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in proxy.NAMES:
        for each in (name, name.upper()):
            monkeypatch.setenv(each, "")
    given = environment({"https": URL, "http": URL}, exceptions([], [], "cluster.local", []))
    # Refused before a request, and after the proxy is set.
    with pytest.raises(TrainyardError, match="The region mars"):
        client.opened({"profile": None, "region": "mars", "proxy": given})
    assert os.environ["https_proxy"] == URL
    assert get_environ_proxies("https://elasticfilesystem.eu-central-1.amazonaws.com/")["https"] == URL
    assert get_environ_proxies("http://169.254.169.254/latest/meta-data") == {}
