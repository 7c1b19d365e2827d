# SPDX-License-Identifier: Apache-2.0
import sys

import torch

sys.exit(0)
