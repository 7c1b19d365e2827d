# SPDX-License-Identifier: Apache-2.0
"""Shape cases: what get_inputs() returns is case 0, what get_input_cases() lists follows from 1.

A case is a list of arguments like get_inputs(), of other shapes and nothing else. A process of the
oracle serves one case.
"""

from __future__ import annotations

import types
from typing import Any

from failure import ProblemError


def case_source(case: int) -> str:
    """Where the arguments of a case come from, for sentences."""
    return "get_inputs()" if case == 0 else f"get_input_cases()[{case - 1}]"


def list_cases(path: str, module: types.ModuleType) -> list[Any]:
    """The cases beyond get_inputs(); none when the file defines no get_input_cases."""
    function = getattr(module, "get_input_cases", None)
    if function is None:
        return []
    if not callable(function):
        raise ProblemError(f"{path}: get_input_cases is not a function; define one or remove it")
    listed = function()
    if not isinstance(listed, (list, tuple)):
        raise ProblemError(
            f"{path}: get_input_cases() returns {type(listed).__name__}; it must return a list of "
            "cases, each a list like that of get_inputs()"
        )
    return list(listed)


def draw_case(path: str, module: types.ModuleType, case: int) -> Any:
    """The arguments of one case, drawn under the seed that is set."""
    return module.get_inputs() if case == 0 else pick_case(path, list_cases(path, module), case)


def pick_case(path: str, cases: list[Any], case: int) -> Any:
    if case > len(cases):
        raise ProblemError(
            f"{path}: get_input_cases() lists {len(cases)} cases here and listed more before; "
            "return the same cases each time"
        )
    return cases[case - 1]
