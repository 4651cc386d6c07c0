#!/usr/bin/env bash
# Build an image without a container engine, and test that it speaks: docker/prove.sh cpu|cuda (as root)
#
# buildah runs the Dockerfile, every step in a chroot; a root made by debootstrap stands in for
# the registry's base image. apt and pip are configured inside as on this machine. Nothing is left behind.
set -euo pipefail
cd "$(dirname "$0")/.."
device=${1:?cpu or cuda}
missing=()
for tool in buildah debootstrap; do command -v "$tool" >/dev/null || missing+=("$tool"); done
if [ ${#missing[@]} -gt 0 ]; then scripts/apt-install.sh "${missing[@]}"; fi

work=$(mktemp -d)
buildah() { command buildah --root "$work/store" --runroot "$work/run" "$@"; }
clean_up() {
  buildah rm --all >/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

echo "Base image: debootstrap, Debian 12"
# shellcheck disable=SC2016 # the format is apt's
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
debootstrap --variant=minbase bookworm "$work/root" "$mirror" >"$work/debootstrap.log" ||
  { tail -n 20 "$work/debootstrap.log" >&2; exit 1; }
: >"$work/root/etc/apt/sources.list"
for part in sources.list sources.list.d apt.conf.d; do
  if [ -e "/etc/apt/$part" ]; then cp -a "/etc/apt/$part" "$work/root/etc/apt/"; fi
done
rm -f "$work"/root/var/cache/apt/archives/*.deb
base=$(buildah from scratch)
buildah add -q "$base" "$work/root" / >/dev/null
buildah commit -q --rm "$base" docker.io/library/debian:bookworm-slim >/dev/null
rm -rf "$work/root"

# pip's settings as one file, and the folders on this machine that they name.
{
  echo "[global]"
  pip config list | sed -n "s/^[^.]*\.\([a-z-]*\)='\(.*\)'$/\1 = \2/p" | sort -u
} >"$work/pip.conf"
mounts=(--volume "$work/pip.conf:/etc/pip.conf:ro")
certificates=$(sed -n 's/^cert = //p' "$work/pip.conf")
if [ -n "$certificates" ]; then
  # Elsewhere than on this machine: Debian's package of certificates writes to the usual place.
  sed -i 's#^cert = .*#cert = /etc/pip-certificates.pem#' "$work/pip.conf"
  mounts+=(--volume "$certificates:/etc/pip-certificates.pem:ro")
fi
while read -r folder; do
  if [ -d "$folder" ]; then mounts+=(--volume "$folder:$folder:ro"); fi
done < <(sed -nE 's/^(find-links|(extra-)?index-url) = //p' "$work/pip.conf" | tr ' ' '\n' |
  sed 's#^file://##; s#/simple/*$##')
constraints=$(sed -n 's/^constraint = //p' "$work/pip.conf")
if [ -n "$constraints" ]; then mounts+=(--volume "$constraints:$constraints:ro"); fi

echo "Building docker/Dockerfile.$device"
index=()
if [ "$device" = cpu ]; then index=(--build-arg TORCH_INDEX="${TORCH_INDEX:-}"); fi
buildah build --isolation chroot --pull=never --layers=false --format docker "${mounts[@]}" \
  "${index[@]}" -f "docker/Dockerfile.$device" -t "cantata:$device" .
buildah images

echo "Serving, with no network but loopback"
container=$(buildah from --pull=never "cantata:$device")
unshare --net --pid --fork --kill-child --mount-proc \
  python3 docker/prove_serving.py "$device" buildah --root "$work/store" --runroot "$work/run" "$container"
