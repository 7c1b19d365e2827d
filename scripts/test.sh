#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds, and runs every test. Arguments go to ctest (-L unit, -R name).

set -euo pipefail
cd "$(dirname "$0")/.."
KE_TEST_PACKAGES="mcp==2.3.0"  # the public client that e2e_mcp talks with
# shellcheck source=scripts/setup.sh
. scripts/setup.sh
step "Testing"
# Those that judge kernels wait for each other (RESOURCE_LOCK); the others run beside them.
ctest --test-dir build --output-on-failure -j "${KE_TEST_JOBS:-2}" "$@"
