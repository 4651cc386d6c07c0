"""Metrics of pictures, from the request to the end."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from cantata.metrics.utterances import EndReason, Outcome

_SECONDS_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0)


class PictureMetrics:
    """Pictures of every model; rejected requests are counted with all others.

    Args:
        registry: takes the metrics.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        model = ("model",)
        self._drawing = Gauge(
            "cantata_pictures_drawing", "Pictures being drawn.", model, registry=registry
        )
        self._ended = {
            outcome: Counter(
                f"cantata_pictures_{outcome.value}",
                f"Pictures {text}.",
                labels,
                registry=registry,
            )
            for outcome, text, labels in (
                (Outcome.COMPLETED, "that were completed", model),
                (Outcome.ABORTED, "whose client cancelled or left, by reason", (*model, "reason")),
                (Outcome.FAILED, "that a stage could not finish, by reason", (*model, "reason")),
            )
        }
        self._seconds = Histogram(
            "cantata_picture_seconds",
            "Time from the request to the picture.",
            model,
            buckets=_SECONDS_BUCKETS,
            registry=registry,
        )
        self._steps = Counter(
            "cantata_picture_steps",
            "Denoising steps of all pictures, as the stages report them.",
            model,
            registry=registry,
        )

    def opened(self, model: str) -> None:
        """A picture was admitted; `ended` follows."""
        self._drawing.labels(model).inc()

    def stepped(self, model: str, steps: int) -> None:
        """A picture has advanced by this many steps."""
        self._steps.labels(model).inc(steps)

    def ended(self, model: str, outcome: Outcome, reason: EndReason | None, seconds: float) -> None:
        """A picture is over; its time is recorded only if it was completed."""
        self._drawing.labels(model).dec()
        if outcome is Outcome.COMPLETED:
            self._ended[outcome].labels(model).inc()
            self._seconds.labels(model).observe(seconds)
        else:
            self._ended[outcome].labels(model, reason or EndReason.FAILED).inc()
