# SPDX-License-Identifier: Apache-2.0
import torch
import a_package_that_nobody_has
