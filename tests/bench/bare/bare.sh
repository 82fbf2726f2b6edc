#!/bin/sh
# Run a program in the file system of an image in containerd, as a plain process: no pod, no limits.
# bare.sh IMAGE FOLDER NAME=VALUE... < PROGRAM, on a node as root. A folder with the prefix FOLDER is created and removed.
set -eu
image=$1
# Use a new folder each time: containerd remembers the path of a mount for a while after its removal.
root=$(mktemp -d "$2.XXXXXX")
shift 2

away() {
    for each in tmp sys dev proc; do umount "$root/$each" 2>/dev/null || true; done
    ctr --namespace=k8s.io images unmount --rm "$root" >/dev/null 2>&1 || true
    rmdir "$root" 2>/dev/null || true
}
trap away EXIT

ctr --namespace=k8s.io images mount --rw "$image" "$root" >/dev/null
for each in proc dev sys tmp opt/trainyard/code; do mkdir -p "$root/$each"; done
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount --bind /sys "$root/sys"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
cat > "$root/opt/trainyard/code/main.py"
# Use the user and the path of the image, and nothing from this shell's environment.
env -i PATH=/opt/venv/bin:/usr/bin:/bin HOME=/tmp PYTHONUNBUFFERED=1 "$@" \
    "$(command -v chroot)" --userspec=65532:65532 "$root" python /opt/trainyard/code/main.py
