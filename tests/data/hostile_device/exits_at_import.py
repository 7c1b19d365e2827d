# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed
# The same in Python's way, before there is a class.
raise SystemExit(0)
