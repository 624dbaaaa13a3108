"""What metrics are called where people read: words, with the short name of the papers behind them."""

from __future__ import annotations

WORDS = {
    "id": "accuracy now (ID)",
    "ood": "accuracy later (OOD)",
    "tas": "relative to fresh (TAS)",
    "sh": "periods valid (SH)",
    "dh": "periods to drift (DH)",
    "fix-id": "training periods (ID)",
    "fix-ood": "later periods (OOD)",
    "fix-worst": "worst later period",
    "oec": "overall (OEC)",
    "efr": "errors fixed (EFR)",
    "ukr": "upstream kept (UKR)",
    "okr": "queries kept (OKR)",
    "csr": "right so far (CSR)",
    "csr-strict": "right so far, before learning (CSR)",
    "kg": "unseen queries (KG)",
    "ukr-before": "upstream kept, before learning (UKR)",
    "okr-before": "queries kept, before learning (OKR)",
    "kg-before": "unseen queries, before learning (KG)",
    "stream-accuracy": "accuracy",
    "batch-accuracy": "accuracy by batches",
    "last-tenth": "last tenth",
    "overall": "accuracy",
    "mean-class": "mean of classes",
    "novel-head": "new classes, many samples",
    "novel-tail": "new classes, few samples",
    "pretrain-head": "known classes, many samples",
    "pretrain-tail": "known classes, few samples",
    "rolling": "rolling accuracy",
    "k+1": "counting 'unseen' (k+1)",
    "unseen-auroc-mdt": "noticing the new (AUROC)",
    "matched-auroc-mdt": "noticing, times matched (AUROC)",
    "clock-auroc": "noticing by the clock (AUROC)",
}


def word(metric: str) -> str:
    """A metric in words.

    >>> word("ood"), word("final-accuracy")
    ('accuracy later (OOD)', 'final accuracy')
    """
    return WORDS.get(metric, metric.replace("-", " "))
