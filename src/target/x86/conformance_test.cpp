// SPDX-License-Identifier: Apache-2.0
#include "target/conformance.hpp"

KE_CONFORMANCE(x86)
