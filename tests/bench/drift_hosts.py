"""Drift of hosts: its injection, and its removal if that is manual."""

from __future__ import annotations

from drift_kinds import Kind
from drift_lab import answering, on
from drift_shapes import DISK, MACHINE
from stand import Stand

ONE, TWO = "worker1", "worker2"
CONF_D = "/etc/containerd/conf.d"
API = "/etc/kubernetes/manifests/kube-apiserver.yaml"
FRONT = "/etc/kubernetes/pki/front-proxy-client"
REPACK = """
cd "$(mktemp -d)"
apt-get -qq download {name} > /dev/null
dpkg-deb --raw-extract {name}_*.deb tree
sed -i 's/^Version: .*/Version: {version}/' tree/DEBIAN/control
dpkg-deb --build --root-owner-group tree other.deb > /dev/null
export DEBIAN_FRONTEND=noninteractive
dpkg --force-confold --force-downgrade --force-hold --install other.deb > /dev/null 2>&1
rm -r "$PWD"
"""
"""Rebuilds the package unchanged with another version."""

EDITED = [
    Kind("sysctl changed", [f"{ONE} sysctl net.ipv4.ip_forward"], on(ONE, "sysctl -qw net.ipv4.ip_forward=0")),
    Kind("helper package removed", [f"{ONE} package ipset"],
         on(ONE, "dpkg --force-depends --remove ipset > /dev/null 2>&1")),
    Kind("package unheld", [f"{ONE} hold of kubelet"], on(ONE, "apt-mark unhold kubelet > /dev/null")),
    Kind("CA certificate removed", [f"{ONE} /usr/local/share/ca-certificates/trainyard-site.crt"],
         on(ONE, "rm /usr/local/share/ca-certificates/trainyard-site.crt")),
    Kind("foreign apt source added", [f"{ONE} /etc/apt/sources.list.d/strange.list"],
         on(ONE, "echo 'deb https://apt.example.org/ trixie main' > /etc/apt/sources.list.d/strange.list")),
    Kind("line of `/etc/hosts` removed", [f"{ONE} /etc/hosts"],
         on(ONE, "grep -v mirror /etc/hosts > /run/hosts; cat /run/hosts > /etc/hosts; rm /run/hosts")),
    Kind("containerd drop-in edited", [f"{ONE} {CONF_D}/10-trainyard.toml"],
         on(ONE, f"sed 's/enable_cdi = true/enable_cdi = false/' {CONF_D}/10-trainyard.toml > /run/edited;"
                 f" cat /run/edited > {CONF_D}/10-trainyard.toml; rm /run/edited")),
    Kind("registry's `hosts.toml` edited", [f"{ONE} /etc/containerd/certs.d/*/hosts.toml"],
         on(ONE, "set -- /etc/containerd/certs.d/*/hosts.toml; echo '# edited' >> \"$1\"")),
    Kind("kubelet configuration edited", [f"{ONE} /var/lib/kubelet/config.yaml"],
         on(ONE, "sed -i 's/^syncFrequency: .*/syncFrequency: 33s/' /var/lib/kubelet/config.yaml")),
    Kind("Docker's `daemon.json` edited", [f"{TWO} /etc/docker/daemon.json"],
         on(TWO, "echo '{}' > /etc/docker/daemon.json"), needs="builders"),
]  # fmt: skip

STOPPED = [
    Kind("containerd stopped", [f"{ONE} containerd.service running"], on(ONE, "systemctl stop kubelet containerd")),
    Kind("containerd disabled", [f"{ONE} containerd.service enabled"], on(ONE, "systemctl -q disable containerd")),
    Kind("kubelet stopped", [f"{ONE} kubelet.service running"], on(ONE, "systemctl stop kubelet")),
    Kind("containerd of another patch version (repacked)", [f"{TWO} package containerd.io"],
         on(TWO, REPACK.format(name="containerd.io", version="2.3.1-1~repacked")),
         follows=[f"{TWO} containerd.service *"]),
]  # fmt: skip


# A file without holes, as swapon requires.
SWAP = "head -c 64M /dev/zero > /swap.drift; chmod 600 /swap.drift; mkswap -q /swap.drift; swapon /swap.drift"

OF_A_MACHINE = [
    Kind("swap on (emulated machine)", [f"{MACHINE} swap"], on(MACHINE, SWAP)),
    Kind("chrony stopped (emulated machine)", [f"{MACHINE} chrony.service running"],
         on(MACHINE, "systemctl stop chrony")),
]  # fmt: skip


def manifest(stand: Stand, old: str, new: str) -> None:
    """Change a flag in place: another file in the folder would be another pod. The kubelet restarts the server."""
    script = (
        f"sed 's/--profiling={old}/--profiling={new}/' {API} > /run/edited; cat /run/edited > {API}; rm /run/edited"
    )
    stand.on_node("cp1", "sh", "-ec", script)
    # Wait until it has restarted.
    stand.on_node("cp1", "sleep", "15")
    answering(stand)


SHORT_LIVED = f"""
cp -a {FRONT}.crt /root/front-proxy-client.crt
openssl req -new -key {FRONT}.key -subj /CN=front-proxy-client -out /run/request
echo extendedKeyUsage=clientAuth > /run/extensions
openssl x509 -req -in /run/request -CA /etc/kubernetes/pki/front-proxy-ca.crt \
  -CAkey /etc/kubernetes/pki/front-proxy-ca.key -extfile /run/extensions -out {FRONT}.crt \
  -not_before "$(date -u -d '-345 days' +%Y%m%d%H%M%SZ)" \
  -not_after "$(date -u -d '+20 days' +%Y%m%d%H%M%SZ)" 2> /dev/null
rm /run/request /run/extensions
"""
STRANGER = f"""
cat > {CONF_D}/99-stranger.toml <<'END'
version = 3

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false
END
"""
OWN_KUBELET = """
export DEBIAN_FRONTEND=noninteractive
wanted=$(apt-cache madison kubelet | cut -d'|' -f2 | tr -d ' ' | head -1)
apt-get -qq install --allow-change-held-packages --yes "kubelet=$wanted" > /dev/null
apt-mark hold kubelet > /dev/null
systemctl restart kubelet
"""

BY_HAND = [
    Kind("flag in an API server's manifest edited", [f"cp1 {API}"],
         lambda stand: manifest(stand, "false", "true"), lambda stand: manifest(stand, "true", "false")),
    Kind("certificate ends within 30 days", [f"cp1 certificate {FRONT}.crt"],
         on("cp1", SHORT_LIVED), on("cp1", f"mv /root/front-proxy-client.crt {FRONT}.crt")),
    Kind("kubelet of another version (repacked)", [f"{TWO} package kubelet"],
         on(TWO, REPACK.format(name="kubelet", version="1.36.1-1~repacked") + "apt-mark hold kubelet > /dev/null"),
         on(TWO, OWN_KUBELET), follows=[f"{TWO} kubelet.service *", f"{TWO} hold of kubelet"]),
    Kind("unit masked", ["cp1 kubelet.service masked"],
         on("cp1", "systemctl -q mask kubelet"), on("cp1", "systemctl -q unmask kubelet")),
    Kind("disk below its bound", [f"{ONE} space on {DISK}"],
         on(ONE, f"mkdir -p {DISK}; mount -t tmpfs -o size=64m tmpfs {DISK}; head -c 48M /dev/zero > {DISK}/full"),
         on(ONE, f"umount {DISK}; rmdir {DISK}")),
    Kind("drop-in of a stranger that changes the cgroup driver",
         [f"{ONE} {CONF_D}/99-stranger.toml", f"{ONE} containerd *SystemdCgroup"],
         on(ONE, STRANGER), on(ONE, f"rm {CONF_D}/99-stranger.toml"), follows=[f"{ONE} containerd.service restart"],
         settle=True),
]  # fmt: skip
