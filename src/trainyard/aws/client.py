"""A thin layer over boto3: sessions, calls and their errors.

Credentials come only from boto3's own sources (environment, profile, login, instance role). No text that leaves this
module contains them.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..core.clock import CLOCK, Clock
from ..core.errors import TrainyardError
from .errors import AwsError, refused, unanswered

SERVICES = {"efs": "elasticfilesystem", "ec2": "ec2"}
"""boto3's name of a service -> the prefix of its actions in IAM."""

ATTEMPTS = 8
"""Attempts per call. Between attempts botocore waits up to 20 s, with jitter, and slows down when throttled."""

CONNECT_SECONDS = 10
READ_SECONDS = 60

BUSY = "IncorrectFileSystemLifeCycleState"
"""Error code of EFS while a file system is created or changed, maybe by another run."""

CONSISTENCY_SECONDS = 20.0
"""Seconds that AWS may need until a change is visible in all its parts."""


@dataclass(frozen=True)
class Patience:
    """Limits for waits on a resource.

    :param timeout: limit in seconds for each wait.
    :param interval: seconds between two observations.
    """

    timeout: float = 300.0
    interval: float = 3.0
    clock: Clock = CLOCK


class Aws:
    """Calls to AWS in one region.

    :param session: a `boto3.Session`.
    :param config: a `botocore.config.Config`.
    """

    def __init__(self, session: Any, config: Any, region: str) -> None:
        self.region = region
        self._session, self._config = session, config
        self._clients: dict[str, Any] = {}
        self._secrets: set[str] = set()
        self._remember_secrets()

    def call(
        self, operation: str, resource: str, *, fine: Sequence[str] = (), **parameters: Any
    ) -> dict[str, Any] | None:
        """Make one call.

        :param operation: the service and the name in the API, such as `efs:CreateFileSystem`.
        :param resource: the affected resource, for the error.
        :param fine: error codes that count as success; the call then returns None.
        :raises AwsError: AWS refused the call, or all attempts got no answer.
        """
        service, _, name = operation.partition(":")
        client = self._client(service)

        def once() -> dict[str, Any]:
            return getattr(client, _method(name))(**parameters)

        return self._guarded(once, operation, resource, fine)

    def items(
        self, operation: str, key: str, resource: str, *, fine: Sequence[str] = (), **parameters: Any
    ) -> list[dict[str, Any]]:
        """Return all items that a call lists, from all pages; empty for an error in `fine`.

        :param key: key of the list in the response.
        """
        service, _, name = operation.partition(":")
        pages = self._client(service).get_paginator(_method(name)).paginate(**parameters)
        return self._guarded(lambda: [each for page in pages for each in page[key]], operation, resource, fine) or []

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self._session.client(service, region_name=self.region, config=self._config)
        return self._clients[service]

    def _guarded(self, once: Callable[[], Any], operation: str, resource: str, fine: Sequence[str]) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        action = action_of(operation)
        try:
            return once()
        except ClientError as error:
            failure = refused(error.response, action, resource, self._clean)
            if failure.code in fine:
                return None
            raise failure from None
        except BotoCoreError as error:
            raise unanswered(error, action, resource, self.region, self._clean) from None

    def _clean(self, text: str) -> str:
        """Remove credentials from a text of AWS: its message about a wrong signature quotes the whole request."""
        from botocore.exceptions import BotoCoreError, ClientError

        with suppress(BotoCoreError, ClientError):
            self._remember_secrets()
        for secret in self._secrets:
            text = text.replace(secret, "(hidden)")
        return text

    def _remember_secrets(self) -> None:
        """Add the current credentials to the known ones, because those of a login or a role are renewed."""
        keys = self._session.get_credentials().get_frozen_credentials()
        self._secrets |= {secret for secret in (keys.secret_key, keys.token, keys.access_key) if secret}


def action_of(operation: str) -> str:
    """Convert an operation to its IAM action: `efs:CreateFileSystem` to `elasticfilesystem:CreateFileSystem`."""
    service, _, name = operation.partition(":")
    return f"{SERVICES[service]}:{name}"


def connect(profile: str | None = None, region: str | None = None) -> Aws:
    """Return a connection for the caller's profile and region; no request to EFS or EC2 is sent yet.

    :raises TrainyardError: boto3, the profile, credentials or the region are missing or unknown.
    """
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError as error:
        raise TrainyardError(
            f"The Python package boto3 cannot be imported by {sys.executable}: {error}.",
            remedy="Install requirements.txt into the environment that runs Ansible.",
        ) from error
    try:
        session = boto3.Session(profile_name=profile or None, region_name=region or None)
        _check_region(session)
        if session.get_credentials() is None:
            raise TrainyardError(
                "There are no AWS credentials.",
                remedy="Set AWS_PROFILE, log in (aws sso login), set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or run on an instance with a role.",
            )
        retries = {"mode": "adaptive", "total_max_attempts": ATTEMPTS}
        config = Config(retries=retries, connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS)
        return Aws(session, config, session.region_name)
    except (BotoCoreError, ClientError) as error:
        raise TrainyardError(
            f"The AWS credentials cannot be used: {error}.",
            remedy="Check AWS_PROFILE and the files ~/.aws/config and ~/.aws/credentials, or log in again.",
        ) from None


def _check_region(session: Any) -> None:
    region = session.region_name
    if not region:
        raise TrainyardError(
            "No AWS region is set.", remedy="Set the region, AWS_DEFAULT_REGION, or the region of the profile."
        )
    known: list[str] = []
    for partition in session.get_available_partitions():
        known += session.get_available_regions("efs", partition_name=partition)
        if region in known:
            return
    near = difflib.get_close_matches(region, known, 1)
    raise TrainyardError(
        f"The region {region} has no EFS that this boto3 knows.",
        remedy=f"Did you mean {near[0]}?" if near else "Correct it, or install a newer boto3.",
    )


def _method(operation: str) -> str:
    from botocore import xform_name

    return xform_name(operation)


def persist(
    attempt: Callable[[], Any], unknown: Sequence[str], patience: Patience, seconds: float = CONSISTENCY_SECONDS
) -> Any:
    """Make a call that depends on a recent change, and retry it until that change is visible in AWS.

    :param unknown: error codes to retry.
    :param seconds: limit in seconds, capped by `patience.timeout`.
    :raises AwsError: another error, or one of `unknown` after the limit.
    """
    clock = patience.clock
    deadline = clock.monotonic() + min(seconds, patience.timeout)
    while True:
        try:
            return attempt()
        except AwsError as error:
            if error.code not in unknown or clock.monotonic() + patience.interval > deadline:
                raise
        clock.sleep(patience.interval)
