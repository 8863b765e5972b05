"""Words of the drift page."""

TEXTS: dict[str, tuple[str, str]] = {
    "title": ("What has drifted?", "哪些指标发生了漂移？"),
    "none": (
        "No detector runs for this candidate yet: `gnomon run` or `gnomon watch` starts them with the "
        "first pairs.",
        "此候选方还没有检测器：`gnomon run` 或 `gnomon watch` 会随第一批回答对启动检测器。",
    ),
    "firing": ("▲ firing", "▲ 触发中"),
    "pending": ("◆ pending", "◆ 待定"),
    "running": ("● quiet", "● 平静"),
    "needs_baseline": ("○ learning its baseline", "○ 正在学习基线"),
    "baseline_too_faulty": ("✕ baseline too faulty", "✕ 基线缺陷过多"),
    "alarm": ("alarm", "告警"),
    "explain": (
        "Each detector holds evidence S against what is tolerated; at A M it alarms, so false alarms "
        "come at most once in A pairs on average. The bar is the way from S = 1 to A M on a logarithmic "
        "scale; from 1 % of A M on a detector is pending.",
        "每个检测器针对容许值积累证据 S，达到 A M 时告警，因此误报平均每 A 个回答对至多一次。条形为从 S "
        "= 1 到 A M 的对数尺度进度；达到 A M 的 1 % 时为待定。",
    ),
    "refused": (
        "{pairs} pairs are in slices of {dimension} beyond alerts.max_slices, which nobody watches.",
        "{pairs} 个回答对属于 {dimension} 中超出 alerts.max_slices 的切片，未被监视。",
    ),
    "capped": ("Only the {most} nearest to an alarm are listed.", "只列出最接近告警的 {most} 个。"),
    "metric": ("Metric", "指标"),
    "status": ("State", "状态"),
    "dimension": ("Dimension", "维度"),
    "no_match": ("No detector fits these filters.", "没有符合过滤条件的检测器。"),
    "column_state": ("state", "状态"),
    "column_metric": ("metric", "指标"),
    "column_slice": ("slice", "切片"),
    "column_evidence": ("evidence (log)", "证据（对数）"),
    "column_share": ("S / A M", "S / A M"),
    "column_observed": ("observed", "观测值"),
    "column_n": ("n", "n"),
    "column_baseline": ("baseline", "基线"),
    "column_baseline_n": ("baseline n", "基线 n"),
    "column_tolerated": ("tolerated", "容许值"),
    "column_unit": ("unit", "单位"),
    "column_back": ("back to good (log)", "恢复进度（对数）"),
    "unit_rate": ("rate", "比率"),
    "unit_score": ("mean", "均值"),
    "unit_rank": ("mean rank", "平均秩"),
    "headline": ("{status}: {metric}, {slice}", "{status}：{metric}，{slice}"),
    "observed_days": (
        "Observed: all hours of the time range that are kept; without a start, the last {days} days.",
        "观测值：时间范围内保留的全部小时；未指定开始时为最近 {days} 天。",
    ),
    "choose": ("Select a row to see one detector.", "选择一行查看单个检测器。"),
    "rank_help": (
        "The mean rank of the values among those of the baseline: 0.5 where nothing changed.",
        "数值在基线中的平均秩：没有变化时为 0.5。",
    ),
    "observed": ("observed", "观测值"),
    "tolerated": ("tolerated", "容许值"),
    "baseline": ("baseline", "基线"),
    "evidence": ("Evidence S", "证据 S"),
    "evidence_of": ("alarm at {threshold}", "达到 {threshold} 时告警"),
    "evidence_fired": ("alarm was at {threshold}; S began anew", "阈值 {threshold} 已达到；S 重新开始"),
    "back": (
        "evidence that it is over: W = {back}, resolved at {limit}",
        "恢复的证据：W = {back}，达到 {limit} 时恢复",
    ),
    "no_threshold": (
        "It has nothing to be tested against yet: {pairs} pairs learned. `gnomon alerts baseline show` "
        "tells how many it takes; a tolerance can be declared instead.",
        "尚无可比较的对象：已学习 {pairs} 个回答对。`gnomon alerts baseline show` 显示还需多少；也可以直"
        "接声明容许值。",
    ),
    "too_faulty": (
        "Its baseline is so bad, or so scattered, that nothing can be held against it: choose a better "
        "time or declare a tolerance (`gnomon alerts baseline set`).",
        "基线过差或过于分散，无法用来比较：请选择更好的时间段或声明容许值（`gnomon alerts baseline set`）。",
    ),
    "declared": ("declared in the settings", "在设置中声明"),
    "no_baseline": ("none: the tolerance is declared", "无：容许值由设置声明"),
    "learned": ("learned, version {version}", "学习得到，版本 {version}"),
    "n": ("n = {count} pairs", "n = {count} 个回答对"),
    "n_records": ("n = {count} records", "n = {count} 条记录"),
    "to_alert": ("Its alert", "对应的告警"),
    "to_pairs": ("The pairs behind it", "背后的回答对"),
    "over_time": ("Over time", "随时间变化"),
    "hours_none": (
        "No hour of this detector is kept in the range.",
        "此范围内没有保留该检测器的小时数据。",
    ),
    "axis_time": ("time ({zone})", "时间 ({zone})"),
    "axis_mean": ("mean in the hour", "小时均值"),
    "axis_evidence": ("S / A M", "S / A M"),
    "axis_share": ("share of pairs", "回答对占比"),
    "axis_at_most": ("share at or under", "小于等于该值的占比"),
    "pairs": ("pairs", "回答对"),
    "distribution": ("Distributions", "分布"),
    "against": ("Hold the current pairs against", "将当前回答对与之比较"),
    "against_baseline": ("the baseline", "基线"),
    "against_change": ("the pairs before the alert's change", "告警变化之前的回答对"),
    "against_halves": ("the earlier half of them", "其中较早的一半"),
    "before_baseline": ("baseline", "基线"),
    "before_change": ("before the change", "变化之前"),
    "before_halves": ("earlier", "较早"),
    "now": ("current", "当前"),
    "sample": (
        "{name}: n = {count}, mean {mean}, from {start} to {end}",
        "{name}：n = {count}，均值 {mean}，从 {start} 到 {end}",
    ),
    "sample_none": ("{name}: no pair with this metric", "{name}：没有具有此指标的回答对"),
    "sample_bounded": (
        "At most the last {most} pairs of each; equal requests count each time here.",
        "每份样本至多取最近 {most} 个回答对；相同请求在此每次都计入。",
    ),
    "not_comparable": ("Nothing to compare: one of the samples is empty.", "无法比较：其中一份样本为空。"),
    "tests": ("Tests", "检验"),
    "tests_note": (
        "They describe the two samples and never raise an alert: repeated every minute, such tests would "
        "cry wolf on most days. Only the detector alarms.",
        "检验只描述两份样本，从不触发告警：若每分钟重复，这类检验大多数日子都会误报。只有检测器会告警。",
    ),
    "test": ("test", "检验"),
    "statistic": ("statistic", "统计量"),
    "p": ("p", "p"),
    "p_adjusted": ("p, adjusted over {count} slices", "p（按 {count} 个切片校正）"),
    "change": ("change of the mean", "均值变化"),
    "slices_note": (
        "Slice by slice, least p first (false discovery rate: Benjamini and Hochberg).",
        "逐切片，p 值由小到大（错误发现率：Benjamini–Hochberg）。",
    ),
    "slices_most": (
        "At most {most} slices are tested: those with the most pairs.",
        "最多检验 {most} 个切片：回答对最多的那些。",
    ),
    "slices_none": (
        "No slice has {least} pairs in both samples.",
        "没有切片在两份样本中都有 {least} 个回答对。",
    ),
    "floor": ("Slices by excess over the noise floor", "按超出噪声基底排序的切片"),
    "floor_note": (
        "How much further the candidate is from the reference than an endpoint is from itself when it is "
        "asked twice. Right of the line: more than noise. 95 % intervals.",
        "候选方与参考方的差异，比同一端点被问两次时自身差异大多少。竖线右侧：超出噪声。95 % 区间。",
    ),
    "floor_faults_note": (
        "How much more often only the candidate is faulty than only the reference, which is the floor of "
        "faults. Since the detectors began. 95 % intervals.",
        "仅候选方出错比仅参考方出错多出的比率；后者即故障的基底。自检测器启动以来。95 % 区间。",
    ),
    "floor_metric": ("Of which score", "指标"),
    "floor_by": ("Cut by", "切分维度"),
    "floor_faults": ("faults on one side only", "仅一侧的故障"),
    "floor_none": (
        "Not measured: no request with this score was asked twice in this range (`replay.noise_fraction` "
        "says how many are).",
        "未测量：此范围内没有带此分数的请求被问过两次（比例由 `replay.noise_fraction` 决定）。",
    ),
    "floor_slices_none": ("No slice of this dimension has pairs.", "此维度没有含回答对的切片。"),
    "floor_period": (
        "Requests since {start}, among about the last {most} records.",
        "自 {start} 以来的请求，取自约最近 {most} 条记录。",
    ),
    "excess": ("excess", "超出量"),
    "candidate": ("candidate", "候选方"),
    "floor_value": ("floor", "基底"),
    "low": ("95 % from", "95 % 下限"),
    "high": ("95 % to", "95 % 上限"),
    "bounded_by": ("floor of", "基底来自"),
    "side_reference": ("reference", "参考方"),
    "side_candidate": ("candidate", "候选方"),
    "floor_cut": (
        "The chart shows {count} of {all} slices, the largest excess first; the table has all.",
        "图中为 {all} 个切片中超出量最大的 {count} 个；表中为全部。",
    ),
    "floor_choose": ("Select a slice to reach its pairs.", "选择切片以查看其回答对。"),
    "to_slice": ("Pairs of {slice}", "{slice} 的回答对"),
}
