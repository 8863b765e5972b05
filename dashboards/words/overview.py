"""Words of the overview."""

TEXTS: dict[str, tuple[str, str]] = {
    "title": ("Is it safe to ship?", "可以发布吗？"),
    "consumed": ("consumed", "已消费"),
    "compared": ("compared", "已比较"),
    "skipped": ("skipped", "已跳过"),
    "failed": ("failed", "失败"),
    "dead_lettered": ("dead-lettered", "死信"),
    "unaccounted": (
        "{count} consumed records have no outcome yet (or were lost).",
        "{count} 条已消费记录尚无结果（或已丢失）。",
    ),
    "regressions": ("regressions", "回归"),
    "candidate_only": ("faults, candidate only", "仅候选方故障"),
    "reference_only": ("faults, reference only", "仅参考方故障"),
    "kl": ("forced KL, mean (nats)", "强制 KL 均值 (nats)"),
    "similarity": ("edit similarity, mean", "编辑相似度均值"),
    "verdicts": ("Verdicts", "判定"),
    "faults": ("Faults on one side only", "仅一侧的故障"),
    "no_faults": ("No fault on one side only.", "没有仅一侧的故障。"),
    "over_time": ("Divergence over time", "随时间的差异"),
}
