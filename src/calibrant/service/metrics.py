"""What Prometheus reads. Every metric begins with ``calibrant_``, and none holds a text."""

import math
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from calibrant.service.alarm import Alarm
from calibrant.service.model import Model, Said

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONFIDENCE = tuple(i / 20 for i in range(1, 21))
FAMILIARITY = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, *(i / 10 for i in range(1, 11)))


class Metrics:
    """Of one service."""

    def __init__(self) -> None:
        self.registry = of = CollectorRegistry()
        ProcessCollector(registry=of)
        self._requests = Counter("calibrant_requests", "Requests answered.", ["route", "status"], registry=of)
        self._seconds = Histogram(
            "calibrant_request_seconds", "Time to answer.", ["route"], buckets=SECONDS, registry=of
        )
        self._batch = Histogram("calibrant_batch_texts", "Texts in a batch.", buckets=SIZES, registry=of)
        self._batch_seconds = Histogram(
            "calibrant_batch_seconds", "Time of a batch.", buckets=SECONDS, registry=of
        )
        self._waiting = Gauge("calibrant_queue_texts", "Texts that wait for a batch.", registry=of)
        self._limit = Gauge("calibrant_queue_limit_texts", "Texts that may wait.", registry=of)
        self._confidence = Histogram(
            "calibrant_confidence", "Confidence of the answers.", buckets=CONFIDENCE, registry=of
        )
        self._familiarity = Histogram(
            "calibrant_familiarity", "Familiarity of the texts.", buckets=FAMILIARITY, registry=of
        )
        self._outcomes = Counter(
            "calibrant_texts",
            "Texts by what was said: answered, unsure, unfamiliar.",
            ["outcome"],
            registry=of,
        )
        for outcome in ("answered", "unsure", "unfamiliar"):
            self._outcomes.labels(outcome)
        self._cut = Counter("calibrant_texts_cut", "Texts longer than the model reads.", registry=of)
        self._reloads = Counter("calibrant_reloads", "Replaced runs.", ["result"], registry=of)
        self._run = Gauge("calibrant_run_info", "The run that answers now.", ["run", "method"], registry=of)
        self._alarm: Alarm | None = None
        for name, told, value in (
            (
                "calibrant_drift_alarm",
                "1: text is less familiar than dev's; NaN: not known.",
                self._rings,
            ),
            (
                "calibrant_drift_p",
                "The chance of text like dev's to look as strange, ever.",
                self._chance,
            ),
        ):
            Gauge(name, told, registry=of).set_function(value)

    def queue(self, waiting: Callable[[], int], limit: int) -> None:
        """Whom to ask how many texts wait."""
        self._waiting.set_function(waiting)
        self._limit.set(limit)

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch(self, texts: int, seconds: float) -> None:
        """A batch has been answered."""
        self._batch.observe(texts)
        self._batch_seconds.observe(seconds)

    def said(self, said: Sequence[Said]) -> None:
        """Texts have been answered."""
        for each in said:
            self._confidence.observe(each.decision.confidence)
            if each.decision.familiarity is not None:
                self._familiarity.observe(each.decision.familiarity)
            self._outcomes.labels(each.reason or "answered").inc()
            self._cut.inc(each.cut)
        if self._alarm is not None:
            self._alarm.observe(said)

    def loaded(self, model: Model) -> None:
        """Another model answers from now on; of one that cannot be watched nothing is taken over."""
        alarm = Alarm(model)
        if self._alarm is not None:
            self._reloads.labels("loaded").inc()
        self._run.clear()
        self._run.labels(model.digest, model.run.name).set(1)
        self._alarm = alarm

    def reload_failed(self) -> None:
        """A replaced run could not be loaded."""
        self._reloads.labels("failed").inc()

    def page(self) -> bytes:
        """As Prometheus wants it."""
        return generate_latest(self.registry)

    def _rings(self) -> float:
        return math.nan if self._alarm is None else self._alarm.rings

    def _chance(self) -> float:
        return math.nan if self._alarm is None else self._alarm.p
