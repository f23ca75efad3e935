#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Builds PAPI's own tests against Debian's PAPI. Runs inside the tool root.
#
# usage: papi.sh DIR
#   DIR     the directory with the Debian packages that scripts/parity has fetched and the list of items;
#           programs for the guest are installed in DIR/guest/opt/rpmu/parity
set -eu

dir=$1
cd "$dir"
for package in *.deb; do
	dpkg-deb -x "$package" root
done
examples=root/usr/share/doc/papi-examples/examples
find "$examples" -name '*.gz' -exec gunzip {} +
lib=root/usr/lib/x86_64-linux-gnu
mkdir -p guest/opt/rpmu/parity/papi
cp root/usr/bin/papi_* guest/opt/rpmu/parity
rm guest/opt/rpmu/parity/papi_hl_output_writer # a Python script

tests=$(awk '$1 == "papi" { print $3 }' items)
flags="-w -O1 -I root/usr/include -I $examples/testlib -I $examples -I $examples/validation_tests"

# The tests share these files. A library of them lets the linker take only the files that a test calls.
mkdir -p objects
for file in "$examples"/testlib/*.c "$examples"/validation_tests/*_testcode.c \
	"$examples"/validation_tests/display_error.c "$examples"/ctests/prof_utils.c; do
	# shellcheck disable=SC2086 # a list
	gcc $flags -c -o "objects/$(basename "$file" .c).o" "$file" || echo "papi.sh: left out, since it does not compile: ${file##*/}"
done
ar rcs objects/libtests.a objects/*.o

for test in $tests; do
	# shellcheck disable=SC2086 # a list
	gcc $flags -o "guest/opt/rpmu/parity/papi/$test" "$examples/ctests/$test.c" objects/libtests.a \
		-L "$lib" -lpapi -lpfm -lpthread -ldl -lm -Wl,-rpath-link,"$lib" || echo "papi.sh: $test does not build"
done
for test in $tests; do
	[ -x "guest/opt/rpmu/parity/papi/$test" ] || {
		echo "papi.sh: $test was not built" >&2
		exit 1
	}
done
