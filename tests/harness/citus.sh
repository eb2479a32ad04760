#!/usr/bin/env bash
# Builds Citus for the installed PostgreSQL, from its source: `citus.sh FOLDER`.
#
# FOLDER is a git clone of Citus (github.com/citusdata/citus) that has the tag v13.2.0: the next
# releases, up to 13.4 and 14.2, plan each statement again (dealer/eventlog/README.md). Needs
# Debian's packages postgresql-server-dev-NN of the installed PostgreSQL, libpq-dev, liblz4-dev,
# libzstd-dev, libkrb5-dev, libssl-dev, flex, bison and make, and takes two minutes on two
# processors. Citus is licensed under the AGPL and is no part of this project: tests that need it
# are skipped where it is not installed.
set -euo pipefail
source=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git -C "$source" archive v13.2.0 | tar x -C "$folder"
cd "$folder"
# PostgreSQL 15.20 declares a function of this name itself.
sed -i 's/^have_createdb_privilege(void)$/citus_have_createdb_privilege(void)/' src/include/pg_version_compat.h
./configure --without-libcurl --with-security-flags=no >configure.log
make -s -j"$(nproc)" extension with_llvm=no
make -s install-extension with_llvm=no
ls "$(pg_config --sharedir)/extension/citus.control"
