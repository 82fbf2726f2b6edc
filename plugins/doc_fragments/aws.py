"""Documentation that AWS modules share; `trainyard.aws.client` has the specifications."""

from __future__ import annotations


class ModuleDocFragment:
    """Options, read by `ansible-doc`: `aws` for all modules, `aws.waiting` for those that change resources."""

    DOCUMENTATION = r"""
options:
  profile:
    description: Profile in AWS's configuration files; without it, boto3 uses its default search order.
    type: str
  region:
    description: Region; the default is that of the environment or the profile.
    type: str
requirements: [boto3]
"""

    WAITING = r"""
options:
  timeout:
    description: Limit in seconds for each wait.
    type: int
    default: 300
  interval:
    description: Seconds between two observations during a wait.
    type: float
    default: 3
attributes:
  check_mode:
    support: full
    description: Reads the state, and reports the same steps and diff.
"""
