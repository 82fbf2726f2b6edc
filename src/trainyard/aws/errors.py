"""Errors of failed AWS calls: the call, the resource, AWS's own message, and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import TrainyardError

_LOGIN = "Check that the credentials are correct and have not expired, and that the region is enabled for the account."
_ALLOW = "Allow this action for the calling identity; docs/storage.md contains the whole policy."

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
