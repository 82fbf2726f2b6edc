"""A thin layer over boto3: errors, sessions and calls, waits, and shared options.

Credentials come only from boto3's own sources (environment, profile, login, instance role). No text that leaves this
module contains them.

Parts: errors of failed calls; sessions and calls; waits for resources; options. An error has the call, the resource,
AWS's own message, and the remedy. A wait is data: the states that end it and those that continue it. All other states
are failures. All AWS modules share the options, and the objects created from them.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..core.errors import TrainyardError
from ..core.proxy import PROXY, use
from ..core.waiter import CLOCK, Clock, wait_until

_LOGIN = "Check that the credentials are correct and have not expired, and that the region is enabled for the account."
_ALLOW = "Allow this action for the calling identity; docs/tasks/storage.md contains the whole policy."

REMEDIES = {
    "AccessDenied": _ALLOW,
    "AccessDeniedException": _ALLOW,
    "UnauthorizedOperation": _ALLOW,
    "AuthFailure": _LOGIN,
    "ExpiredToken": _LOGIN,
    "ExpiredTokenException": _LOGIN,
    "IncompleteSignature": _LOGIN,
    "InvalidClientTokenId": _LOGIN,
    "RequestExpired": _LOGIN,
    "SignatureDoesNotMatch": _LOGIN,
    "UnrecognizedClientException": _LOGIN,
    "OptInRequired": _LOGIN,
    "TooManyRequests": "AWS allows a change of the throughput mode, or a decrease of the provisioned throughput, once "
    "in 24 hours. Wait, or set the previous values.",
    "FileSystemLimitExceeded": "Remove an unneeded file system, or request a higher quota from AWS.",
    "AccessPointLimitExceeded": "Remove unneeded access points, or request a higher quota from AWS.",
    "ThroughputLimitExceeded": "Set less throughput, or request a higher quota from AWS.",
    "InsufficientThroughputCapacity": "Set less throughput, or retry later.",
    "NoFreeAddressesInSubnet": "Free an address in the subnet, or use another subnet of that zone.",
    "IpAddressInUse": "Set another address, or none, so that EFS chooses one.",
    "SubnetNotFound": "Set a subnet of this region and account.",
    "InvalidSubnetID.NotFound": "Set subnets of this region and account.",
    "SecurityGroupNotFound": "Set security groups in the subnet's VPC.",
    "InvalidGroup.NotFound": "Set security groups of this VPC.",
    "SecurityGroupLimitExceeded": "Set at most five security groups, the limit of a network interface.",
    "UnsupportedAvailabilityZone": "Set a subnet of another zone; EFS is not available in this one.",
    "InvalidPolicyException": "Correct the policy. AWS also refuses a policy that locks out its author.",
    "FileSystemInUse": "Delete its mount targets first.",
    "DependencyViolation": "Find the network interfaces, and the rules of other groups, that still use it.",
    "FileSystemNotFound": "Set a file system of this region and account.",
    "RulesPerSecurityGroupLimitExceeded": "Set fewer sources, or one network instead of several.",
}
"""AWS error code -> remedy."""

_NO_ANSWER = "Check the network path to AWS, proxies, and the region {region}."


class AwsError(TrainyardError):
    """A call that AWS refused or did not answer.

    :param code: AWS's error code, or the name of botocore's exception.
    :param answer: the parsed error response.
    """

    def __init__(
        self, message: str, *, code: str, remedy: str = "", answer: Mapping[str, Any] | None = None, **facts: object
    ) -> None:
        super().__init__(message, remedy=remedy, code=code, **facts)
        self.code = code
        self.answer = answer or {}


def refused(answer: Mapping[str, Any], action: str, resource: str, clean: Callable[[str], str]) -> AwsError:
    """Convert an error response to an `AwsError`.

    :param answer: the parsed response of botocore's ClientError.
    :param clean: removes credentials from a text.
    """
    error = answer.get("Error", {})
    code, said = str(error.get("Code", "")), clean(str(error.get("Message", ""))).rstrip(".")
    return AwsError(
        f"AWS refuses {action} for {resource}: {code}{f', {said}' if said else ''}.",
        code=code,
        remedy=REMEDIES.get(code, ""),
        answer=answer,
        call=action,
        resource=resource,
        request_id=answer.get("ResponseMetadata", {}).get("RequestId", ""),
    )


def unanswered(error: Exception, action: str, resource: str, region: str, clean: Callable[[str], str]) -> AwsError:
    """Return the error for a call that was not sent or not answered."""
    from botocore.exceptions import ConnectionError as NoConnection
    from botocore.exceptions import HTTPClientError

    kind, said = type(error).__name__, clean(str(error)).rstrip(".")
    lost = isinstance(error, (HTTPClientError, NoConnection))
    return AwsError(
        f"{action} for {resource} {'has no answer' if lost else 'cannot be sent'}: {said}.",
        code=kind,
        remedy=_NO_ANSWER.format(region=region) if lost else "",
        call=action,
        resource=resource,
    )


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


State = str | None
"""`LifeCycleState` of EFS; None for a resource that AWS does not list."""


@dataclass(frozen=True)
class Goal:
    """The target of a wait.

    :param name: the target state, for messages.
    :param reached: states that end the wait.
    :param on_the_way: states in which the wait continues; any other state fails.
    """

    name: str
    reached: frozenset[State]
    on_the_way: frozenset[State]


AVAILABLE = Goal("available", frozenset({"available"}), frozenset({None, "creating", "updating"}))
"""A new resource may not be listed for some seconds, hence None."""

GONE = Goal("gone", frozenset({None, "deleted"}), frozenset({"creating", "available", "updating", "error", "deleting"}))
"""A deleted resource may be listed with its old state for some seconds. Incompletely created ones are deleted, too."""

LEAVING = frozenset({"deleting", "deleted"})
"""States that are treated as absent."""


def settle(look: Callable[[], dict[str, State]], goal: Goal, patience: Patience) -> None:
    """Wait until all given resources have reached a goal.

    :param look: reads all of them; returns name for messages -> state.
    :raises AwsError: one is in a state that does not lead to the goal.
    :raises WaitError: the timeout was reached; the message lists the resources that have not reached the goal.
    """

    def observe() -> dict[str, State]:
        states = look()
        for name, state in states.items():
            if state not in goal.reached | goal.on_the_way:
                raise AwsError(
                    f"{name} is {state}, and will not become {goal.name}.",
                    code="State",
                    remedy="Check it in the AWS console. If its state is error, delete it and create it again.",
                )
        return {name: state for name, state in states.items() if state not in goal.reached}

    wait_until(
        observe,
        lambda left: not left,
        what=f"all AWS resources of this step to be {goal.name}",
        timeout=patience.timeout,
        interval=patience.interval,
        show=lambda left: ", ".join(f"{name} is {state or 'not listed'}" for name, state in sorted(left.items())),
        clock=patience.clock,
    )


def state_of(found: dict[str, Any] | None) -> State:
    """Return the state from a description of EFS."""
    return found["LifeCycleState"] if found else None


CONNECTION: dict[str, dict[str, Any]] = {
    "profile": {"type": "str"},
    "region": {"type": "str"},
    **PROXY,
}

WAITING: dict[str, dict[str, Any]] = {
    "timeout": {"type": "int", "default": 300},
    "interval": {"type": "float", "default": 3},
}


def opened(params: Mapping[str, Any]) -> Aws:
    """Return the connection for a module's options; see `connect`."""
    use(params["proxy"])
    return connect(params["profile"], params["region"])


def patience(params: Mapping[str, Any]) -> Patience:
    """Return the wait limits from a module's options."""
    return Patience(float(params["timeout"]), float(params["interval"]))


def given(options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the options that are set; Ansible fills in None for the others."""
    return None if options is None else {name: value for name, value in options.items() if value is not None}
