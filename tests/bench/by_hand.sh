#!/usr/bin/env bash
# Do the work of site.yml by hand: the same bundle, nodes, packages, settings and training, in a separate lab.
# It is the baseline of docs/benchmarks.md, not a way to build a cluster: it supports one machine, one layout, and no existing state.
#
#   by_hand.sh up     from no lab to a passed training; prints `phase NAME SECONDS` for every phase
#   by_hand.sh down   removes everything
#
# BENCH_INPUTS  folder written by inputs.py; without it `up` writes one first, which is not timed
# PYTHON        interpreter of the project's environment, for that purpose
set -euo pipefail

LAB=byhand
LABEL=dev.trainyard.bench=$LAB
# 10.88.0.0/16 is the engine's own default network.
NET=10.83.0
MIRROR=mirror.trainyard.internal
PORT=5000
NODES=(cp1 worker1 worker2)
declare -A ADDRESS=([mirror]=$NET.2 [cp1]=$NET.10 [worker1]=$NET.21 [worker2]=$NET.22)
STATE=/var/lib/trainyard/$LAB
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# No request leaves the machine, whatever proxies the environment sets.
export no_proxy="$NET.0/24,127.0.0.1" NO_PROXY="$NET.0/24,127.0.0.1"

die() {
    echo "by_hand.sh: $*" >&2
    exit 1
}

# --- helpers ------------------------------------------------------------------------------------------------------------------
PODMAN=(podman)
if [[ ! -e /sys/fs/cgroup/cgroup.controllers ]]; then
    # crun refuses a mixed cgroup hierarchy.
    PODMAN+=(--runtime "$(command -v runc)")
fi
pod() { timeout 300 "${PODMAN[@]}" "$@"; }
# on NODE COMMAND...: run one command in a node, with a time limit.
on() {
    local node=$1
    shift
    timeout 300 "${PODMAN[@]}" exec -i "$LAB-$node" "$@"
}
kubectl() { on cp1 kubectl --kubeconfig=/etc/kubernetes/admin.conf "$@"; }

phase_started=$EPOCHREALTIME
# phase NAME: report the time since the last call as phase NAME.
phase() {
    local now=$EPOCHREALTIME
    awk -v name="$1" -v a="$phase_started" -v b="$now" 'BEGIN { printf "phase %s %.1f\n", name, b - a }'
    phase_started=$now
}

# background NAME FUNCTION [ARGUMENT...]: run in the background with output to a log; `finish NAME...` waits, and fails if it failed.
declare -A JOB=()
background() {
    local name=$1
    shift
    "$@" >"$STATE/logs/$name.log" 2>&1 &
    JOB[$name]=$!
}
finish() {
    local name
    for name in "$@"; do
        wait "${JOB[$name]}" || {
            tail -n 30 "$STATE/logs/$name.log" >&2
            die "$name failed; log: $STATE/logs/$name.log"
        }
    done
}
# until_true SECONDS COMMAND...: repeat until it succeeds; on a timeout show the output of the last attempt.
until_true() {
    local end=$((SECONDS + $1)) said
    shift
    until said=$("$@" 2>&1); do
        ((SECONDS < end)) || die "not in time: $* ($said)"
        sleep 0.3
    done
}

# --- down ---------------------------------------------------------------------------------------------------------------------
down() {
    local found
    found=$(pod ps --all --quiet --filter "label=$LABEL")
    # shellcheck disable=SC2086  # one word per container
    [[ -z $found ]] || pod rm --force --time=5 --volumes $found >/dev/null
    found=$(pod volume ls --quiet --filter "label=$LABEL")
    # shellcheck disable=SC2086
    [[ -z $found ]] || pod volume rm --force $found >/dev/null
    nft delete table inet lab_$LAB 2>/dev/null || true
    if pod network exists $LAB; then pod network rm $LAB >/dev/null; fi
    rm -rf "$STATE"
}

# --- nodes --------------------------------------------------------------------------------------------------------------------
network() {
    local bridge
    pod network create --label=$LABEL --disable-dns --subnet=$NET.0/24 --gateway=$NET.1 $LAB >/dev/null
    bridge=$(pod network inspect $LAB --format '{{.NetworkInterface}}' 2>/dev/null) || bridge=
    [[ -n $bridge && $bridge != "<no value>" ]] || bridge=$(pod network inspect $LAB | sed -n 's/.*"network_interface": "\(.*\)".*/\1/p')
    [[ -n $bridge ]] || die "the network $LAB has no bridge"
    nft -f - <<NFT
table inet lab_$LAB {
  chain forward {
    type filter hook forward priority -10; policy accept;
    iifname "$bridge" oifname != "$bridge" reject
  }
  chain input {
    type filter hook input priority -10; policy accept;
    iifname "$bridge" ct state established,related accept
    iifname "$bridge" reject
  }
}
NFT
}

limit() { # limit FLAG WANTED: the wanted limit, or the hard one of this shell if that is lower
    local hard
    hard=$(ulimit -H "$1")
    [[ $hard == unlimited || $hard -gt $2 ]] && echo "$2" || echo "$hard"
}

node() {
    local name=$1 nofile nproc options=()
    nofile=$(limit -n 1048576)
    nproc=$(limit -u 32768)
    for path in /var/lib/containerd /var/lib/docker; do
        pod volume create --label=$LABEL "$LAB-$name${path//\//-}" >/dev/null
        options+=("--volume=$LAB-$name${path//\//-}:$path")
    done
    [[ ! -e /dev/kmsg ]] || options+=(--volume=/dev/kmsg:/dev/kmsg)
    pod create --name="$LAB-$name" --hostname="$name" --label=$LABEL --network=$LAB --ip="${ADDRESS[$name]}" \
        --dns=$NET.1 --dns-search=. --no-hosts --privileged --systemd=false --env=container=podman \
        --stop-signal=SIGRTMIN+3 --cgroupns=private --tmpfs=/run:rw,exec,mode=755 --tmpfs=/run/lock --tmpfs=/tmp:exec \
        --ulimit="nofile=$nofile:$nofile" --ulimit="nproc=$nproc:$nproc" "${options[@]}" "$NODE_IMAGE"
    mkdir -p "$STATE/identity/$name/etc"
    printf '127.0.0.1 localhost\n%s %s\n%s %s\n' "${ADDRESS[$name]}" "$name" "${ADDRESS[mirror]}" $MIRROR \
        >"$STATE/identity/$name/etc/hosts"
    tar -C "$STATE/identity/$name" -c . | pod cp - "$LAB-$name:/"
    pod start "$LAB-$name"
    until_true 60 on "$name" systemctl is-active --quiet basic.target dbus.socket
}

# --- mirror -------------------------------------------------------------------------------------------------------------------
keys() {
    local pki=$STATE/pki
    install -d -m 0700 "$pki" "$pki/gnupg" "$pki/trust"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj "/CN=by hand" \
        -addext "keyUsage=critical,keyCertSign,cRLSign" -keyout "$pki/ca.key" -out "$pki/ca.crt"
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$MIRROR" \
        -keyout "$pki/server.key" -out "$pki/server.csr"
    openssl x509 -req -in "$pki/server.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 825 \
        -extfile <(echo "subjectAltName=DNS:$MIRROR,IP:${ADDRESS[mirror]}") -out "$pki/server.crt"
    cp "$pki/ca.crt" "$pki/trust/"
    local gpg=(gpg --homedir "$pki/gnupg" --batch --quiet)
    "${gpg[@]}" --passphrase= --quick-generate-key "by hand" ed25519 sign never
    "${gpg[@]}" --armor --export >"$pki/apt.asc"
    "${gpg[@]}" --digest-algo=SHA512 --clear-sign --output "$pki/InRelease" "$REPOSITORY/Release"
    gpgconf --homedir "$pki/gnupg" --kill all
}

mirror() {
    on mirror tar -x -C /srv --one-top-level=apt <"$REPOSITORY/repository.tar"
    local files=$STATE/mirror
    mkdir -p "$files"/{srv/apt/dists/"$SUITE",etc/bench,etc/nginx/sites-enabled,etc/docker/registry}
    cp "$STATE/pki/InRelease" "$files/srv/apt/dists/$SUITE/"
    cp "$STATE"/pki/{server.crt,server.key,apt.asc} "$files/etc/bench/"
    echo "deb [signed-by=/etc/bench/apt.asc] file:/srv/apt $SUITE main" >"$files/etc/bench/apt.list"
    cat >"$files/etc/nginx/sites-enabled/default" <<NGINX
server {
    listen 443 ssl default_server;
    server_name $MIRROR;
    ssl_certificate /etc/bench/server.crt;
    ssl_certificate_key /etc/bench/server.key;
    access_log off;
    location /apt/ { alias /srv/apt/; }
}
NGINX
    cat >"$files/etc/docker/registry/config.yml" <<REGISTRY
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: /var/lib/docker-registry}, delete: {enabled: true}}
http: {addr: ":$PORT", tls: {certificate: /etc/bench/server.crt, key: /etc/bench/server.key}}
REGISTRY
    tar -C "$files" --owner=0 --group=0 -c . | on mirror tar -x -C / --no-overwrite-dir
    # shellcheck disable=SC2016  # the node's shell expands it
    on mirror sh -euc '
        chmod 0755 /srv /srv/apt
        export DEBIAN_FRONTEND=noninteractive
        from="-o Dir::Etc::SourceList=/etc/bench/apt.list -o Dir::Etc::SourceParts=-"
        apt-get -qq update $from
        apt-get -qq install --no-install-recommends -o Dpkg::Options::=--force-confold $from nginx-light docker-registry curl
        chgrp docker-registry /etc/bench/server.key
        chmod 0640 /etc/bench/server.key
        systemctl restart nginx docker-registry'
    until_true 60 curl --silent --fail --noproxy '*' --cacert "$STATE/pki/ca.crt" "https://${ADDRESS[mirror]}:$PORT/v2/"
}

push() { # push LAYOUT REFERENCE
    timeout 300 skopeo --insecure-policy copy --quiet --preserve-digests --dest-cert-dir="$STATE/pki/trust" "oci:$1:image" \
        "docker://${ADDRESS[mirror]}:$PORT/$2"
}
# push_matching PATTERN: push all images whose reference matches, those of the control plane before the large training image.
push_matching() {
    local layout reference
    while read -r layout reference; do
        [[ ! $reference =~ $1 ]] || push "$layout" "$reference"
    done <"$BENCH_INPUTS/images"
}

# --- cluster ------------------------------------------------------------------------------------------------------------------
cluster_files() {
    local files=$STATE/files registry
    mkdir -p "$files"/etc/{apt/sources.list.d,sysctl.d,containerd/conf.d,containerd/certs.d,kubernetes}
    mkdir -p "$files/usr/local/share/ca-certificates"
    cp "$STATE/pki/ca.crt" "$files/usr/local/share/ca-certificates/trainyard-lab.crt"
    {
        printf 'Types: deb\nURIs: https://%s/apt\nSuites: %s\nComponents: main\nSigned-By:\n' $MIRROR "$SUITE"
        sed -e 's/^$/./' -e 's/^/ /' "$STATE/pki/apt.asc"
    } >"$files/etc/apt/sources.list.d/lab.sources"
    printf '%s = 1\n' net.ipv4.ip_forward net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables \
        >"$files/etc/sysctl.d/90-lab.conf"
    printf '%s\n' 'version = 3' 'imports = ["/etc/containerd/conf.d/*.toml"]' >"$files/etc/containerd/config.toml"
    cat >"$files/etc/containerd/conf.d/10-lab.toml" <<TOML
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "registry.k8s.io/pause:$PAUSE_TAG"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "/etc/containerd/certs.d"
[plugins.'io.containerd.cri.v1.runtime']
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = "runc"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
TOML
    for registry in registry.k8s.io docker.io $MIRROR:$PORT; do
        mkdir -p "$files/etc/containerd/certs.d/$registry"
        {
            if [[ $registry == "$MIRROR:$PORT" ]]; then
                echo "server = \"https://$registry\""
            else
                printf 'server = "https://%s/v2/%s"\ncapabilities = ["pull", "resolve"]\noverride_path = true\n' $MIRROR:$PORT "$registry"
            fi
            echo 'ca = "/usr/local/share/ca-certificates/trainyard-lab.crt"'
        } >"$files/etc/containerd/certs.d/$registry/hosts.toml"
    done
    printf '%s-endpoint: unix:///run/containerd/containerd.sock\n' runtime image >"$files/etc/crictl.yaml"
}

packages() { # packages NODE
    tar -C "$STATE/files" --owner=0 --group=0 -c . | on "$1" tar -x -C / --no-overwrite-dir
    on "$1" env DEBIAN_FRONTEND=noninteractive sh -euc '
        update-ca-certificates >/dev/null
        apt-get -qq update
        apt-get -qq install --no-install-recommends -o Dpkg::Options::=--force-confold iptables nftables ipset conntrack \
            ethtool socat kmod procps curl ca-certificates "$@"
        apt-mark -qq hold containerd.io kubelet kubeadm kubectl cri-tools kubernetes-cni
        sysctl --quiet --load /etc/sysctl.d/90-lab.conf' sh \
        "containerd.io=$CONTAINERD_VERSION-*" "kubelet=$KUBERNETES_VERSION-*" "kubeadm=$KUBERNETES_VERSION-*" \
        "kubectl=$KUBERNETES_VERSION-*" "cri-tools=$CRI_TOOLS_VERSION-*" "kubernetes-cni=$CNI_VERSION-*"
    until_true 60 on "$1" ctr --connect-timeout 5s version
}

init() {
    local extra='extraArgs: [{name: profiling, value: "false"}]'
    on cp1 sh -euc 'umask 077; cat >/root/kubeadm.yaml; kubeadm init --config=/root/kubeadm.yaml --skip-token-print \
            --ignore-preflight-errors=SystemVerification; chmod 0600 /var/lib/kubelet/config.yaml' <<YAML
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ${ADDRESS[cp1]}}
nodeRegistration:
  name: cp1
  criSocket: unix:///run/containerd/containerd.sock
  imagePullSerial: false
  kubeletExtraArgs: [{name: node-ip, value: ${ADDRESS[cp1]}}]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v$KUBERNETES_VERSION
controlPlaneEndpoint: ${ADDRESS[cp1]}:6443
networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/16, dnsDomain: cluster.local}
etcd: {local: {dataDir: /var/lib/etcd, imageTag: $ETCD_TAG}}
dns: {imageTag: $COREDNS_TAG}
apiServer: {$extra}
controllerManager: {$extra}
scheduler: {$extra}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
failCgroupV1: false
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
serializeImagePulls: false
maxParallelImagePulls: 4
evictionHard: {memory.available: 100Mi, nodefs.available: 2Gi, nodefs.inodesFree: 5%, imagefs.available: 2Gi}
syncFrequency: 10s
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
conntrack: {maxPerCore: 0}
YAML
}

join() { # join NODE TOKEN CA-HASH
    on "$1" sh -euc 'umask 077; cat >/root/join.yaml; kubeadm join --config=/root/join.yaml \
            --ignore-preflight-errors=SystemVerification; rm /root/join.yaml; chmod 0600 /var/lib/kubelet/config.yaml' <<YAML
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken: {apiServerEndpoint: "${ADDRESS[cp1]}:6443", token: "$2", caCertHashes: ["sha256:$3"]}
nodeRegistration:
  name: $1
  criSocket: unix:///run/containerd/containerd.sock
  imagePullSerial: false
  kubeletExtraArgs: [{name: node-ip, value: ${ADDRESS[$1]}}]
YAML
}

calico() {
    sed -e '/# - name: CALICO_IPV4POOL_CIDR/ { s/# // }' \
        -e 's|#   value: "192.168.0.0/16"|  value: "10.244.0.0/16"|' \
        -e '/- name: CALICO_IPV4POOL_VXLAN$/ { n; s/value: .*/value: "Always"/ }' "$CALICO_MANIFEST" >"$STATE/calico.yaml"
    grep -A1 'name: CALICO_IPV4POOL_CIDR' "$STATE/calico.yaml" | grep -q ' value: "10.244.0.0/16"' || die "Calico's manifest has changed"
    kubectl apply --server-side -f - <"$STATE/calico.yaml"
}

# A function, because commands started by `background` have no standard input.
jobset() { kubectl apply --server-side -f - <"$JOBSET_MANIFEST"; }

ready() {
    kubectl --namespace=kube-system rollout status --timeout=240s daemonset/calico-node
    kubectl --namespace=kube-system wait --timeout=240s --for=condition=Available deployment/calico-kube-controllers deployment/coredns
    kubectl wait --timeout=240s --for=condition=Ready nodes --all
    kubectl --namespace=jobset-system rollout status --timeout=240s deployment/jobset-controller-manager
}

# --- training -----------------------------------------------------------------------------------------------------------------
submit() { kubectl apply --server-side -f - <"$BENCH_INPUTS/$TRAINING-jobset.json"; }

train() {
    on "$LOG_NODE" install -d -o 65532 -g 65532 -m 0750 "$LOG_PATH/$TRAINING"
    kubectl apply --server-side -f - <"$BENCH_INPUTS/$TRAINING-around.json" >/dev/null
    # The controller's webhook may become ready slightly later than its pod.
    until_true 60 submit
    kubectl --namespace=trainings wait --timeout=280s "jobset/$TRAINING" --for=jsonpath='{.status.terminalState}' >/dev/null
    kubectl --namespace=trainings logs "job/$TRAINING-chief-0" >"$STATE/logs/chief.log"
    grep '"event": *"end"' "$STATE/logs/chief.log" || die "the chief did not end well; log: $STATE/logs/chief.log"
    [[ $(kubectl --namespace=trainings get "jobset/$TRAINING" --output='jsonpath={.status.terminalState}') == Completed ]] ||
        die "the training failed"
}

# --- up -----------------------------------------------------------------------------------------------------------------------
up() {
    local started name token hash
    for name in podman runc nft skopeo curl openssl gpg; do
        command -v $name >/dev/null || die "$name is missing: apt-get install $name"
    done
    [[ $EUID == 0 ]] || die "needs root"
    ! pod network exists $LAB || die "the lab $LAB exists: by_hand.sh down"
    install -d -m 0700 "$STATE" "$STATE/logs"
    if [[ -z ${BENCH_INPUTS:-} ]]; then
        BENCH_INPUTS=$STATE/inputs
        "${PYTHON:-python3}" "$HERE/inputs.py" "$BENCH_INPUTS"
    fi
    # shellcheck source=/dev/null
    source "$BENCH_INPUTS/inputs.sh"
    started=$EPOCHREALTIME phase_started=$EPOCHREALTIME

    background keys keys
    network
    if ! pod image exists "$NODE_IMAGE"; then
        pod tag "$(pod pull --quiet "oci:$NODE_LAYOUT:image" | tail -n 1)" "$NODE_IMAGE"
    fi
    for name in mirror "${NODES[@]}"; do background "node-$name" node "$name"; done
    finish keys node-mirror
    phase nodes

    background mirror mirror
    cluster_files
    finish mirror "${NODES[@]/#/node-}"
    phase mirror

    background push push_matching '^(registry|docker)'
    for name in "${NODES[@]}"; do background "packages-$name" packages "$name"; done
    finish "${NODES[@]/#/packages-}"
    phase packages
    finish push
    background push-training push_matching '^trainyard/'
    phase images

    background init init
    finish init
    phase init

    background calico calico
    token=$(on cp1 kubeadm token create --kubeconfig=/etc/kubernetes/admin.conf --ttl=15m)
    hash=$(on cp1 cat /etc/kubernetes/pki/ca.crt | openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | sha256sum)
    for name in worker1 worker2; do background "join-$name" join "$name" "$token" "${hash%% *}"; done
    background jobset jobset
    finish join-worker1 join-worker2
    on cp1 kubeadm token delete --kubeconfig=/etc/kubernetes/admin.conf "${token%%.*}" >/dev/null
    on cp1 cat /etc/kubernetes/admin.conf | install -m 0600 /dev/stdin "$STATE/kubeconfig"
    phase join

    finish calico jobset
    background ready ready
    finish ready
    phase network_and_jobset

    finish push-training
    phase training_image
    train
    phase training
    phase_started=$started
    phase total
}

case ${1:-} in
up | down) "$1" ;;
*) die "usage: by_hand.sh up | down" ;;
esac
