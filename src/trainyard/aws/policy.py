"""Resource policies of file systems: the one that refuses clients without TLS, and when two policies say the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

REQUIRE_TLS: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Sid": "ClientsOfTheNetwork",
            "Effect": "Allow",
            "Principal": {"AWS": "*"},
            "Action": [
                "elasticfilesystem:ClientMount",
                "elasticfilesystem:ClientRootAccess",
                "elasticfilesystem:ClientWrite",
            ],
            "Condition": {"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}},
        },
        {
            "Sid": "OnlyWithTls",
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Action": "*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
    ],
}
"""What the console of AWS writes for "Enforce in-transit encryption for all clients". Any policy takes the place of
EFS's default one, so it has to allow what that allows: every client that reaches a mount target."""

_OWN = re.compile(r"arn:aws[a-z-]*:elasticfilesystem:[^:]*:[0-9]*:file-system/fs-[0-9a-f]+")
"""What a policy can be about: the file system that has it, whether it names it or not."""

_LISTS = ("Action", "NotAction", "Resource", "NotResource")
_WHO = ("Principal", "NotPrincipal")


def normal(policy: Mapping[str, Any]) -> dict[str, Any]:
    """A policy in the one form of all that mean the same: lists for single values, sorted; names left out."""
    statements = policy.get("Statement", [])
    statements = [statements] if isinstance(statements, Mapping) else statements
    return {
        "Version": policy.get("Version", "2008-10-17"),
        "Statement": sorted(
            (_statement(each) for each in statements), key=lambda each: json.dumps(each, sort_keys=True)
        ),
    }


def requires_tls(policy: Mapping[str, Any]) -> bool:
    """Whether a policy asks how clients connect, which plain NFS does not stand."""
    return "aws:SecureTransport" in json.dumps(policy)


def _statement(statement: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in statement.items():
        if key == "Resource" and all(_OWN.fullmatch(str(each)) for each in _several(value)):
            continue
        if key in _LISTS:
            found[key] = _list(value)
        elif key in _WHO:
            found[key] = {kind: _list(who) for kind, who in ({"AWS": "*"} if value == "*" else value).items()}
        elif key == "Condition":
            found[key] = {test: {name: _list(wanted) for name, wanted in keys.items()} for test, keys in value.items()}
        elif key != "Sid":
            found[key] = value
    return found


def _list(value: Any) -> list[str]:
    # Conditions may have true and "true".
    texts = [str(each).lower() if isinstance(each, bool) else str(each) for each in _several(value)]
    return sorted(texts)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
