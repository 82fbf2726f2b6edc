"""All rules of a site. They refuse faults before the first connection or change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .console_rules import CONSOLE_RULES, CONSOLE_VARIABLES
from .forms import FORM_RULES
from .gpu_rules import GPU_RULES
from .host_rules import HOST_RULES
from .inventory_file_rules import INVENTORY_FILE_RULES
from .namespace_rules import NAMESPACE_RULES
from .network_rules import NETWORK_RULES, NETWORK_VARIABLES
from .proxies import PROXY_RULES
from .reprovision_rules import REPROVISION_RULES
from .site_model import Problem, Site
from .storage_rules import BACKEND_RULES, EFS_RULES, STORAGE_RULES
from .supply_rules import SUPPLY_RULES
from .training_rules import TRAINING_RULES
from .variable_rules import VARIABLE_RULES

Rule = Callable[[Site], Iterator[Problem]]

RULES: tuple[Rule, ...] = (
    *INVENTORY_FILE_RULES,
    *VARIABLE_RULES,
    *FORM_RULES,
    *PROXY_RULES,
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

EFS_VERB_RULES: tuple[Rule, ...] = (
    *INVENTORY_FILE_RULES,
    *VARIABLE_RULES,
    *FORM_RULES,
    *PROXY_RULES,
    *STORAGE_RULES,
    *BACKEND_RULES,
    *EFS_RULES,
)
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
