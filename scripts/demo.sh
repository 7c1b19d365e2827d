#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds, and optimizes two bundled examples with the embedded
# synthesizer: no language model, no network. Ends with what was found and where it lies.
#
#   KE_DEMO_STEPS   search steps an example (default 16)

set -euo pipefail
cd "$(dirname "$0")/.."
KE_BUILD_TARGETS=kernelevolve
# shellcheck source=scripts/setup.sh
. scripts/setup.sh

steps=${KE_DEMO_STEPS:-16}
workspace=${KE_DEMO_WORKSPACE:-build/demo}
mkdir -p "$workspace"
for example in suites/examples/linear_swish.py suites/examples/softmax.py; do
  name=$(basename "$example" .py)
  step "Optimizing $example ($steps steps)"
  build/kernelevolve optimize "$example" --steps "$steps" --seed 1 \
    --workspace "$workspace" --out "$workspace/$name.cpp"
done
step "Every candidate, verdict and time is kept: build/kernelevolve graph ls --workspace $workspace"
