"""The filter claims_on: which claims are in the way of deleting a file system."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.filter.volumes import MARK, claims_on

ID = "fs-0123"
FOLDER = {"hostPath": {"path": "/srv/files/training"}}
OURS = {"app.kubernetes.io/managed-by": "trainyard"}


def volume(source: dict[str, Any], labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    claim = {"namespace": more.get("namespace", "theirs"), "name": "training"}
    return {
        "metadata": {"name": "v", "labels": labels} if labels else {"name": "v"},
        "spec": {**source, "claimRef": claim},
        "status": {"phase": more.get("phase", "Bound")},
    }


@pytest.mark.parametrize(
    ("found", "counts"),
    [
        (volume({"csi": {"volumeHandle": f"{ID}::fsap-1"}}), True),
        (volume({"csi": {"volumeHandle": "fs-4567::fsap-1"}}, OURS), False),
        (volume({"csi": {"volumeHandle": f"{ID}::fsap-1"}}, phase="Released"), False),
        # The label alone, whatever the folder is called by now.
        (volume({"hostPath": {"path": "/before"}}, {MARK: ID}), True),
        (volume(FOLDER, {**OURS, MARK: "fs-4567"}), False),
        (volume(FOLDER, {**OURS, MARK: "other"}), False),
        # Without it: what the site has made, what is below its folder, what serves its claims.
        (volume({"hostPath": {"path": "/before"}}, OURS), True),
        (volume(FOLDER), True),
        (volume({"hostPath": {"path": "/srv/files"}}), True),
        (volume({"hostPath": {"path": "/srv/filesystem"}}), False),
        (volume({"local": {"path": "/mnt"}}, namespace="trainings"), True),
        (volume({"hostPath": {"path": "/mnt"}}), False),
        # Servers of NFS: by name, by address, and by a name that may be one of it.
        (volume({"nfs": {"server": f"{ID}.efs.eu-central-1.amazonaws.com"}}), True),
        (volume({"nfs": {"server": "10.9.0.4"}}), True),
        (volume({"nfs": {"server": "10.9.0.40"}}, OURS), False),
        (volume({"nfs": {"server": "fs-4567.efs.eu-central-1.amazonaws.com"}}, OURS), False),
        (volume({"nfs": {"server": "files.example.org"}}, OURS), True),
        (volume({"nfs": {"server": "files.example.org"}}), False),
    ],
)
def test_claims(found: dict[str, Any], counts: bool) -> None:
    said = claims_on([found], ID, ["10.9.0.4"], "/srv/files/", "trainings")
    assert said == ([f"{found['spec']['claimRef']['namespace']}/training"] if counts else [])
