"""What the tests of the bundle share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.bundle.vendors import Vendor, vendor_server


@pytest.fixture
def vendor(tmp_path, monkeypatch) -> Iterator[Vendor]:
    with vendor_server(tmp_path, monkeypatch) as running:
        yield running
