"""What every objective, calibrator, score and metric must keep to, as functions for anybody's tests.

Each raises ``AssertionError`` with a sentence. ``tests/test_contracts.py`` calls them for all that is
discovered; an outsider calls them for a plug-in (docs/plugins.md). No test runner is needed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.testing.calibrators import check_calibrator as check_calibrator
    from calibrant.testing.metrics import check_metric as check_metric
    from calibrant.testing.objectives import check_objective as check_objective
    from calibrant.testing.scores import check_score as check_score

__all__ = ["check_calibrator", "check_metric", "check_objective", "check_score"]


def __getattr__(name: str) -> Any:
    """So that who checks a metric loads no torch."""
    if name not in __all__:
        raise AttributeError(f"module 'calibrant.testing' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f"calibrant.testing.{name.removeprefix('check_')}s")
    return getattr(module, name)
