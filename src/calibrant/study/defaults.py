"""Which hyper-parameters of a recorded objective are not its class's own."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from calibrant.objectives import objectives
from calibrant.study.cells import variant


def beside_defaults(objective: Mapping[str, Any]) -> str:
    """Those that differ, as ``variant`` writes them; empty where all are the defaults.

    >>> beside_defaults({"name": "manifold-smoothing", "delta_on": 1e-4, "delta_off": 0.005})
    'delta_off=0.005'
    """
    own = asdict(objectives()[objective["name"]]())  # type: ignore[call-overload]
    return variant({name: objective[name] for name in own if objective.get(name, own[name]) != own[name]})
