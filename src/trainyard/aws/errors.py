"""What a failed call of AWS says: the call, the resource, AWS's own words, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import TrainyardError

_LOGIN = "Check the credentials, that they have not expired, and that the account has the region switched on."
_ALLOW = "Allow this action to the identity that makes the calls; docs/storage.md has the whole policy."

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
    "TooManyRequests": "AWS takes another throughput mode, or less provisioned throughput, once in 24 hours. Wait, or "
    "set the former values.",
    "FileSystemLimitExceeded": "Remove a file system that is not needed, or ask AWS for a higher quota.",
    "AccessPointLimitExceeded": "Remove access points that are not needed, or ask AWS for a higher quota.",
    "ThroughputLimitExceeded": "Ask for less throughput, or AWS for a higher quota.",
    "InsufficientThroughputCapacity": "Ask for less throughput, or again later.",
    "NoFreeAddressesInSubnet": "Free an address of the subnet, or name another subnet of that zone.",
    "IpAddressInUse": "Name another address, or none, so that EFS chooses one.",
    "SubnetNotFound": "Name a subnet of this region and account.",
    "InvalidSubnetID.NotFound": "Name subnets of this region and account.",
    "SecurityGroupNotFound": "Name security groups of the VPC of the subnet.",
    "InvalidGroup.NotFound": "Name security groups of this VPC.",
    "SecurityGroupLimitExceeded": "A network interface takes five security groups; name fewer.",
    "UnsupportedAvailabilityZone": "EFS is not in this zone; name a subnet of another.",
    "InvalidPolicyException": "Correct the policy; AWS does not take one that locks out who writes it, either.",
    "FileSystemInUse": "Delete its mount targets first.",
    "DependencyViolation": "Find out what still has it: its network interfaces and the rules of other groups name it.",
    "FileSystemNotFound": "Name a file system of this region and account.",
    "RulesPerSecurityGroupLimitExceeded": "Name fewer sources, or one network for several.",
}
"""Code of AWS -> what a user can do."""

_NO_ANSWER = "Check the way to AWS, proxies, and the region {region}."


class AwsError(TrainyardError):
    """A call that AWS refused or did not answer.

    :param code: AWS's code, or the name of botocore's exception.
    :param answer: what AWS said beside it.
    """

    def __init__(
        self, message: str, *, code: str, remedy: str = "", answer: Mapping[str, Any] | None = None, **facts: object
    ) -> None:
        super().__init__(message, remedy=remedy, code=code, **facts)
        self.code = code
        self.answer = answer or {}


def refused(answer: Mapping[str, Any], action: str, resource: str, clean: Callable[[str], str]) -> AwsError:
    """The error of an answer that is one.

    :param answer: the parsed answer, as botocore's ClientError carries it.
    :param clean: takes credentials out of a text.
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
    """The error of a call that was not sent or not answered."""
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
