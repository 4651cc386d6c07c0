"""What a model's replicas report about its admission, as if they were one server."""

from __future__ import annotations

from collections import Counter

from cantata.contract.service import AdmissionReport
from cantata.distributed.edge.replicas import Replicas
from cantata.distributed.edge.waiting import Waiting


def total_admission(replicas: Replicas, model: str, waiting: Waiting) -> AdmissionReport:
    """The admission of all replicas together, with this edge's own queue."""
    reports = [
        state.admission for peer in replicas.peers if (state := peer.state(model)) is not None
    ]
    admitted: Counter[str] = Counter()
    refused = Counter(waiting.refused)
    for report in reports:
        admitted.update(report.admitted)
        refused.update(report.refused)
    return AdmissionReport(
        places=sum(report.places for report in reports),
        running=sum(report.running for report in reports),
        waiting=len(waiting) + sum(report.waiting for report in reports),
        waiting_batch=sum(report.waiting_batch for report in reports),
        refused=refused,
        admitted=admitted,
        slots=sum(report.slots for report in reports),
        slots_in_use=sum(report.slots_in_use for report in reports),
        quarantined=replicas.crash_tracker.quarantined[model]
        + sum(report.quarantined for report in reports),
        retry_after_s=min((report.retry_after_s for report in reports), default=1.0),
    )
