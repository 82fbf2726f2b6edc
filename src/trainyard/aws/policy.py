"""Resource policies of file systems: the policy that refuses clients without TLS, and a normal form for comparison."""

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
"""The policy that the AWS console writes for "Enforce in-transit encryption for all clients". Any policy replaces EFS's
default one, so it must allow the same: all clients that reach a mount target."""

_OWN = re.compile(r"arn:aws[a-z-]*:elasticfilesystem:[^:]*:[0-9]*:file-system/fs-[0-9a-f]+")
"""The only possible resource of a policy is its own file system, so naming it makes no difference."""

_LISTS = ("Action", "NotAction", "Resource", "NotResource")
_WHO = ("Principal", "NotPrincipal")


def normal(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of a policy: single values become sorted lists, and statement IDs are removed."""
    statements = policy.get("Statement", [])
    statements = [statements] if isinstance(statements, Mapping) else statements
    return {
        "Version": policy.get("Version", "2008-10-17"),
        "Statement": sorted(
            (_statement(each) for each in statements), key=lambda each: json.dumps(each, sort_keys=True)
        ),
    }


def requires_tls(policy: Mapping[str, Any]) -> bool:
    """Return whether a policy checks the transport of clients, so that plain NFS is refused."""
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
    # Conditions may contain both true and "true".
    texts = [str(each).lower() if isinstance(each, bool) else str(each) for each in _several(value)]
    return sorted(texts)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
