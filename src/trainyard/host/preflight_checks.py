"""The table of checks that a host passes before anything on it is changed: code, cause and remedy of each refusal.

`playbooks/check_hosts.yml` reports all reasons of all hosts at once. docs/reference/hosts.md is generated from this
table and from the hosts in tests/zoo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..core.errors import TrainyardError
from ..core.untrusted import line


@dataclass(frozen=True)
class Check:
    """One property of a host.

    :param about: the property, for tables.
    :param cause: format string, a clause about the host without a full stop.
    :param remedy: format string, one or more sentences with the operator's next action.
    """

    about: str
    cause: str
    remedy: str


CHECKS: Mapping[str, Check] = {
    "root": Check(
        "Tasks run as root",
        "the tasks do not run as root",
        "Set `ansible_become: true` or connect as root.",
    ),
    "sudo": Check(
        "The login user can become root",
        "the login user cannot become root: {answer}",
        "If sudo asks for a password, add --ask-become-pass, or set ansible_become_password for the host in a vault.",
    ),
    "first_boot": Check(
        "The first boot has finished",
        "cloud-init has not finished after {waited} s",
        "Find the cause with `cloud-init status --long` on the host, or raise base_first_boot_timeout.",
    ),
    "packages_busy": Check(
        "No other program uses the packages",
        "{program} (process {process}) still holds {lock} after {waited} s",
        "Wait until it ends, or stop it. If it only needs more time, raise base_first_boot_timeout.",
    ),
    "systemd": Check(
        "The service manager is systemd",
        "systemd is not the service manager",
        "Boot the host with systemd.",
    ),
    "system": Check(
        "Distribution and version are supported",
        "its system is {found}, not one of {supported}",
        "Install one of them, or add it to base_supported_systems if you have tested it.",
    ),
    "architecture": Check(
        "Processor architecture",
        "its processor is {found}, but all images are built for x86_64",
        "Use a host with an x86_64 (amd64) processor.",
    ),
    "cpu_flags": Check(
        "Instruction sets of the processor, where trainings may run",
        "the CPU has no {lacking}, which TensorFlow needs",
        "Set the virtual machine's CPU type to host. For a node without trainings, set base_cpu_flags to [].",
    ),
    "memory": Check(
        "Memory",
        "it has {found} MiB of memory, {least} are needed",
        "Give it more, or lower base_memory_min_mib.",
    ),
    "cpus": Check(
        "Number of CPUs",
        "it has {found} CPUs, {least} are needed",
        "Give it more, or lower base_cpu_min.",
    ),
    "space": Check(
        "Free space",
        "{path} has {found} MiB free, {least} are needed",
        "Free or add space, or lower base_disk_free_min_mib.",
    ),
    "space_share": Check(
        "Share of free space on a new node, above the kubelet's eviction threshold",
        "the file system of {path} is {used} % full. The site's images need {images} MiB, {left} % would stay free,"
        " and the kubelet evicts pods below {threshold} % ({signal})",
        "Free or add space, or lower the threshold in kubernetes_kubelet_config.evictionHard.",
    ),
    "cgroup": Check(
        "Version of cgroups",
        "it runs with cgroup v1, which the kubelet refuses",
        "Boot with `systemd.unified_cgroup_hierarchy=1`. To keep version 1, set kubernetes_fail_cgroup_v1 to false and "
        "add SystemVerification to kubernetes_ignore_preflight_errors.",
    ),
    "port": Check(
        "Reserved ports are free",
        "{program} (process {process}) listens on port {port}, which {owner} needs",
        "Stop it, give it another port, or remove the port from base_ports if both can listen there.",
    ),
    "distribution_of_kubernetes": Check(
        "No other Kubernetes distribution is installed",
        "{name} is installed ({path})",
        "Use another host, or remove {name}: `{command}`.",
    ),
    "unproven_cluster": Check(
        "A node belongs to the inventory's cluster, without a kubeconfig on the controller",
        "it is a node of the cluster {found}, according to {source}, and nothing proves that this is the "
        "inventory's cluster: the controller has no kubeconfig {kubeconfig}, and the host has no record of this "
        "project",
        "Take the host out of the inventory. If it may leave the other cluster, remove it there and reset it "
        "(reset.yml). If it is the inventory's, copy its admin.conf to {kubeconfig} on the controller.",
    ),
    "other_cluster": Check(
        "A node belongs to the inventory's cluster",
        "it is a node of another cluster: {found}, according to {source}. The inventory's cluster is {site}, "
        "according to {kubeconfig} on the controller",
        "Take the host out of the inventory. If it may leave the other cluster, remove it there and reset it "
        "(reset.yml). If the inventory's cluster was created again, {again}.",
    ),
    "other_control_plane": Check(
        "A node belongs to the cluster of the inventory's control plane hosts",
        "it is a node of the cluster {name} at {server} according to {source}, and the control plane hosts of this "
        "inventory are not in that cluster",
        "Remove the host from the inventory, or reset it with reset.yml.",
    ),
    "remains": Check(
        "No remains of a cluster",
        "it has remains of a cluster that is not the inventory's: {found}",
        "If nothing there is needed, remove them: `{commands}`, then restart the host.",
    ),
    "cni_files": Check(
        "No other program configures the network of pods",
        "containerd would take the network of pods from {files}",
        "If nothing needs them, move them to another folder. Only clusters of earlier versions share /etc/cni/net.d "
        "with other programs; podman needs no file there with `network_backend = \"netavark\"` in "
        "/etc/containers/containers.conf.",
    ),
    "cni_unknown": Check(
        "The folder of CNI files of an existing cluster is known",
        "the cluster exists, but no node of it answers, so the folder of its CNI files is unknown",
        "Repair the connection to a control plane host. If the cluster no longer exists, remove its kubeconfig "
        "(control_plane_kubeconfig) from the controller.",
    ),
    "foreign_file": Check(
        "Files that the site writes have no settings of others",
        "{files} {hold} settings that this project has not made",
        "Copy the settings that you need to the inventory. Then add {files} to base_replace_files: the old file is "
        "kept next to the new one as NAME.before-trainyard.",
    ),
    "kernel_feature": Check(
        "Kernel features",
        "the running kernel {release} lacks: {lacking}",
        "Boot a kernel that has them (modules {modules}); in a container, load the modules on the machine that runs "
        "it.",
    ),
    "kernel_parameter": Check(
        "Kernel parameters",
        "the running kernel {release} has no sysctl {name}",
        "Correct base_sysctls, or add the feature that provides it to base_kernel_features.",
    ),
    "package_source": Check(
        "Package sources",
        "base_apt_exclusive is true and base_apt_sources is empty, so it would have no package source",
        "Set base_apt_sources to the repositories, or set base_apt_exclusive to false.",
    ),
    "node_address": Check(
        "Address of the node",
        "no interface has the address {address}. Its addresses are {found}",
        "Set kubernetes_node_ip (by default ansible_host) to the address at which the other nodes reach this host.",
    ),
    "endpoint": Check(
        "Name of the API endpoint",
        "control_plane_endpoint is '{endpoint}', but {unknown} cannot resolve {name}",
        "Add the name to your DNS or, for nodes, to base_hosts_entries, or use an address.",
    ),
    "local_resolver": Check(
        "Pods reach the resolver of the host",
        "pods would get the resolver {address} of {path}, which is the pod itself",
        "Set kubernetes_resolv_conf of the host to a file with the addresses of its real resolvers.",
    ),
    "network_overlap": Check(
        "Pod and Service network of a new cluster contain nothing that the host needs",
        "{variable} is {network}, which contains {inside}",
        "Set {variable} to a network that no host uses. It cannot be changed later.",
    ),
    "firewall": Check(
        "The firewall of the host lets other hosts connect",
        "{where} drops connections that other hosts need: {ports}",
        "Open the ports: `{commands}`, then {end}.",
    ),
    "firewall_beside": Check(
        "The role firewall has the only firewall of the host",
        "firewall_enabled is true, and {where} drops packets, too",
        "Turn that firewall off, and list its open ports in firewall_accepted_ports. Or set firewall_enabled to false "
        "for the host, and open the ports of docs/reference/ports.md there.",
    ),
    "firewall_address": Check(
        "The role firewall knows the addresses of all nodes",
        "firewall_enabled is true, and the node has the address {found}, but the inventory has {known}",
        "Set kubernetes_node_ip of the host to {found}.",
    ),
    "unreached": Check(
        "Packets pass between the hosts",
        "connections from {sources} do not reach {target} ({address}) at {ports}: {why}. No firewall that the check "
        "reads closes them on {target}",
        "Open these ports in the network between the two hosts, for example in the provider's security group. "
        "docs/reference/ports.md lists all ports. With firewall_enabled, run site.yml for all hosts, so that each "
        "admits the new one.",
    ),
    "forward_drop": Check(
        "No firewall drops packets of pods in a table of its own",
        "the chain {chain} of the nftables table {family} {table} drops packets of pods",
        "Accept the pod network there: `nft insert rule {family} {table} {chain} ip saddr {network} accept; nft insert "
        "rule {family} {table} {chain} ip daddr {network} accept`. Write both rules into the configuration of that "
        "firewall, too.",
    ),
    "forward_drop_legacy": Check(
        "Rules of iptables-legacy do not drop packets of pods",
        "the chain FORWARD of iptables-legacy drops packets, and Calico accepts those of pods in iptables-nft",
        "Run `iptables-legacy -P FORWARD ACCEPT`, and let its owner use iptables-nft: `update-alternatives --set "
        "iptables /usr/sbin/iptables-nft`. If all hosts have iptables-legacy, set network_proxy_mode to iptables.",
    ),
    "gpu_absent": Check(
        "A GPU host has a GPU",
        "it has no NVIDIA GPU (PCI vendor 10de)",
        "Remove it from gpu_nodes, or install the GPU.",
    ),
    "gpu_too_new": Check(
        "The driver branch supports the GPU",
        "its GPU {gpu} is newer than the driver branch {branch}",
        "Set nvidia_driver_branch to {wanted} or newer.",
    ),
    "gpu_too_old": Check(
        "The driver branch still supports the GPU",
        "its GPU {gpu} is no longer supported by the driver branch {branch}",
        "Set nvidia_driver_branch to {wanted}.",
    ),
    "gpu_modules": Check(
        "Open or proprietary kernel modules",
        "its GPU {gpu} needs the {wanted} kernel modules",
        "Set nvidia_driver_open_modules to {value} for it.",
    ),
    "driver_of_run_file": Check(
        "No driver of NVIDIA's .run program",
        "its driver comes from NVIDIA's .run program ({program}), whose files packages would overwrite",
        "Run `{program}` and restart the host. To keep that driver, set nvidia_driver_source to preinstalled.",
    ),
    "secure_boot": Check(
        "Secure boot trusts the key of dkms",
        "secure boot is on, and the machine does not trust the key {key} with which dkms signs the driver's modules",
        "Enrol it: {commands}, and confirm it at the console during the next boot. Or turn secure boot off.",
    ),
    "nvswitch": Check(
        "NVSwitches have a fabric manager",
        "it has {count} NVSwitches (PCI vendor 10de, class 0680). CUDA starts there only with NVIDIA's fabric "
        "manager, which is not supported yet",
        "Remove it from gpu_nodes. Or install the driver and its fabric manager yourself, start {unit}, and set "
        "nvidia_driver_source to preinstalled.",
    ),
    "gpu_driver_offered": Check(
        "The distribution's driver is new enough",
        "its distribution offers the driver {found}, but the images' CUDA needs {least} (nvidia_driver_minimum)",
        "Set nvidia_driver_source to nvidia.",
    ),
    "gpu_driver_absent": Check(
        "A preinstalled driver shows a GPU",
        "it is in gpu_nodes, but no installed driver shows a GPU",
        "Install the driver, or set nvidia_driver_source (now preinstalled) to nvidia or distro. Remove hosts without "
        "a GPU from gpu_nodes.",
    ),
    "gpu_not_shown": Check(
        "The installed driver shows a GPU",
        "it is in gpu_nodes, but its driver shows no GPU",
        "Find the cause with `dmesg | grep -i nvrm` on the host.",
    ),
    "gpu_driver": Check(
        "The installed driver is new enough",
        "its driver is {found}, but the images' CUDA needs {least} (nvidia_driver_minimum)",
        "{remedy}.",
    ),
    "check_failed": Check(
        "Each check can be executed",
        "the check `{task}` failed: {message}",
        "Correct the cause, then check the host again.",
    ),
}  # fmt: skip
"""Checks by code, in the order of the report."""


@dataclass(frozen=True)
class Reason:
    """Why a host is refused.

    :param code: key of `CHECKS`.
    :param cause: clause about the host; `remedy`: sentences with the operator's next action.
    """

    code: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.cause}. {self.remedy}"

    def as_dict(self) -> dict[str, str]:
        return asdict(self)

    def as_error(self) -> TrainyardError:
        """Return the reason as the error of a module; `facts['reasons']` holds it as a mapping."""
        message = f"{self.cause[0].upper()}{self.cause[1:]}."
        return TrainyardError(message, remedy=self.remedy, reasons=[self.as_dict()])


def reason(code: str, **values: Any) -> Reason:
    """Return the reason of a check with the observed values.

    :raises KeyError: the table has no such code, or its texts use a value that is not given.
    """
    check = CHECKS[code]
    # Names of programs, files and clusters come from the host.
    shown = {name: line(str(value)) for name, value in values.items()}
    return Reason(code, check.cause.format(**shown), check.remedy.format(**shown))


def refuse(name: str, reasons: Sequence[Reason]) -> None:
    """Refuse a host for all its reasons at once.

    :raises TrainyardError: there are reasons; `facts['reasons']` holds them as mappings.
    """
    if reasons:
        raise TrainyardError(
            f"The host {name} cannot be a node:\n" + "\n".join(f"- {each}" for each in reasons),
            reasons=[each.as_dict() for each in reasons],
        )
