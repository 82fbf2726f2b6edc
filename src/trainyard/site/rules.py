"""All rules of a site. They refuse faults before the first connection or change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .console import CONSOLE_RULES, CONSOLE_VARIABLES
from .gpus import GPU_RULES
from .hosts import HOST_RULES
from .inventory_files import INVENTORY_FILE_RULES
from .model import Problem, Site
from .namespaces import NAMESPACE_RULES
from .networks import NETWORK_RULES, NETWORK_VARIABLES
from .reprovision import REPROVISION_RULES
from .storage import BACKEND_RULES, EFS_RULES, STORAGE_RULES
from .supply import SUPPLY_RULES
from .trainings import TRAINING_RULES
from .variables import VARIABLE_RULES

Rule = Callable[[Site], Iterator[Problem]]

RULES: tuple[Rule, ...] = (
    *INVENTORY_FILE_RULES,
    *VARIABLE_RULES,
    *SUPPLY_RULES,
    *HOST_RULES,
    *NETWORK_RULES,
    *STORAGE_RULES,
    *BACKEND_RULES,
    *EFS_RULES,
    *TRAINING_RULES,
    *NAMESPACE_RULES,
    *GPU_RULES,
    *CONSOLE_RULES,
    *REPROVISION_RULES,
)

EFS_VERB_RULES: tuple[Rule, ...] = (*INVENTORY_FILE_RULES, *VARIABLE_RULES, *STORAGE_RULES, *BACKEND_RULES, *EFS_RULES)
"""Rules of playbooks/efs.yml, which may run before the site has a host."""

DEFAULTS_READ = (
    *NETWORK_VARIABLES,
    *CONSOLE_VARIABLES,
    "control_plane_endpoint",
    "efs_mount_mode",
    "efs_require_tls",
    "efs_throughput_mode",
    "kubernetes_dns_ip",
    "nvidia_driver_branch",
    "storage_claims",
    "storage_reclaim_policy",
    "supply",
    "workloads_catalogues",
    "workloads_logs_claim",
    "workloads_logs_path",
    "workloads_require_gpu",
    "workloads_trainings",
)
"""Variables that the rules also need if they are not set. Then the roles' defaults apply."""


def check(site: Site, rules: Sequence[Rule] = RULES) -> list[Problem]:
    """Return all problems of a site in the order of the rules, each once."""
    found = (problem for rule in rules for problem in rule(site))
    return list({str(problem): problem for problem in found}.values())
