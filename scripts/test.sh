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
# Tests that time or start PyTorch would disturb each other: one at a time.
ctest --test-dir build --output-on-failure -j 1 "$@"
