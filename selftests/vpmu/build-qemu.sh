#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Builds QEMU with hooks for the emulated PMU. Runs in the tool root.
#
# usage: build-qemu.sh SOURCE OUT JOBS
#   SOURCE  directory with Debian's source package (qemu_*.orig.tar.*, qemu_*.debian.tar.*)
#   OUT     directory to create, for qemu-system-x86_64
#
# Builds in OUT.part and moves the result to OUT at the end. Prints its progress to standard output.
set -eu

die() {
	echo "build-qemu.sh: $*" >&2
	exit 1
}

# only FILE…: prints the path of FILE. Fails unless there is exactly one.
only() {
	if [ $# -ne 1 ] || [ ! -f "$1" ]; then
		die "expected exactly one file: $*"
	fi
	readlink -f "$1"
}

[ $# -eq 3 ] || die "usage: build-qemu.sh SOURCE OUT JOBS"
here=$(dirname "$(readlink -f "$0")")
source=$1 out=$(readlink -m "$2") jobs=$3
work=$out.part

orig=$(only "$source"/qemu_*.orig.tar.*z)
debian=$(only "$source"/qemu_*.debian.tar.*z)
[ ! -e "$out" ] || die "$out already exists"
rm -rf "$work"
mkdir -p "$work/source" "$work/build"

echo "unpacking ${orig##*/}"
tar -C "$work/source" --strip-components=1 -xf "$orig"
tar -C "$work/source" -xf "$debian"

cd "$work/source"
grep -v '^#' debian/patches/series | while read -r patch; do
	patch -s -p1 <"debian/patches/$patch" || die "Debian's $patch does not apply"
done
for patch in "$here"/qemu/*.patch; do
	echo "applying ${patch##*/}"
	patch -s -p1 <"$patch" || die "${patch##*/} does not apply to ${orig##*/}"
done
cp "$here/qemu/vpmu.h" target/i386/
cp "$here/qemu/vpmu.c" target/i386/tcg/system/
cp "$here/qemu/vpmu.mak" configs/devices/x86_64-softmmu/

cd "$work/build"
echo "configuring"
../source/configure --target-list=x86_64-softmmu --without-default-features --enable-system \
	--enable-tcg --without-default-devices --with-devices-x86_64=vpmu --disable-install-blobs \
	--disable-docs --disable-download --disable-containers --disable-relocatable \
	--disable-debug-info --firmwarepath=/usr/share/qemu:/usr/share/seabios >configure.log 2>&1 || {
	tail -n 20 configure.log >&2
	die "configure failed"
}
ninja -j "$jobs" qemu-system-x86_64
strip qemu-system-x86_64

mkdir "$work/out"
mv qemu-system-x86_64 "$work/out"
mv "$work/out" "$out"
rm -rf "$work"
