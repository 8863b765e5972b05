"""Words of the overview."""

TEXTS: dict[str, tuple[str, str]] = {
    "title": ("Is it safe to ship?", "可以发布吗？"),
    "decision_ship": ("Ship", "可以发布"),
    "decision_hold": ("Hold", "暂缓发布"),
    "decision_need_more": ("Need more pairs", "需要更多回答对"),
    "decision_need_pairs": ("Need about {pairs} more pairs", "约需再有 {pairs} 个回答对"),
    "decision_no_data": ("No data", "没有数据"),
    "decision_mixed": ("No verdict: what served changed", "无法判定：所服务的内容变了"),
    "margin": ("Tolerated excess (margin)", "容许超额（余量）"),
    "bounds": (
        "Excess of candidate-only faults **{excess}**, {confidence} interval {low} to {high} at all "
        "times, margin {margin}",
        "仅候选方故障的超额 **{excess}**，{confidence} 区间 {low} 至 {high}（任何时刻都成立），余量 {margin}",
    ),
    "no_pair": ("No pair was counted.", "没有计入任何回答对。"),
    "counts": (
        "{pairs} pairs counted: only the candidate faulty in {candidate_only}, only the reference in "
        "{reference_only}; {repeats} repeats of a request within an hour count with the first",
        "计入 {pairs} 个回答对：仅候选方出错 {candidate_only} 个，仅参考方出错 {reference_only} 个；一小"
        "时内重复的请求 {repeats} 个，与首个合并计数",
    ),
    "candidate_only_link": ("{count} with the candidate alone at fault", "仅候选方出错的 {count} 个"),
    "reference_only_link": ("{count} with the reference alone at fault", "仅参考方出错的 {count} 个"),
    "coverage": (
        "Coverage {share} of the mirrored records: {covered} of {consumed} consumed",
        "覆盖率 {share}（就镜像记录而言）：已消费 {consumed} 条中的 {covered} 条",
    ),
    "coverage_drawn": (
        "; the sample left out {count} of them ({share}, sampled_out)",
        "；其中 {count} 条未被抽样选中（{share}，sampled_out）",
    ),
    "coverage_none": ("Coverage: nothing was consumed.", "覆盖率：没有消费任何记录。"),
    "left_out": ("Not covered, and why", "未覆盖的记录及原因"),
    "left_out_kind": ("outcome", "结果"),
    "left_out_reason": ("reason", "原因"),
    "left_out_records": ("records", "记录数"),
    "need_line": (
        "About {pairs} more pairs to {towards}{when}, if faults on one side only go on at exactly the "
        "rates counted so far",
        "若单侧故障保持目前的比率，约需再有 {pairs} 个回答对才能{towards}{when}",
    ),
    "need_when": (", {time} at the rate seen", "，按目前的流量约 {time}"),
    "need_none": (
        "No number of pairs can be named: the excess seen is at the margin, or too close to it.",
        "无法给出所需的数量：观测到的超额正好在余量处或过于接近。",
    ),
    "towards_ship": ("ship", "发布"),
    "towards_hold": ("hold", "判为暂缓"),
    "minutes": ("{count} min", "{count} 分钟"),
    "hours": ("{count} h", "{count} 小时"),
    "days": ("{count} days", "{count} 天"),
    "reason_no_data": (
        "no pair was counted in this range: nothing can be said",
        "此范围内没有计入任何回答对：无法判断",
    ),
    "reason_mixed": (
        "what served changed at {when} UTC: the pairs are of more than one thing. Give --since {since} "
        "for what serves now",
        "所服务的内容在 {when} UTC 发生变化：回答对不属于同一对象。用 --since {since} 只看当前所服务的内容",
    ),
    "reason_low": (
        "the lower bound of the excess, {low}, is over the margin of {margin}",
        "超额的下界 {low} 高于余量 {margin}",
    ),
    "reason_slice": (
        "{dimension} {value} is on hold: its lower bound, {low}, is over the margin of {margin}",
        "{dimension} {value} 应暂缓：其下界 {low} 高于余量 {margin}",
    ),
    "reason_high": (
        "the upper bound of the excess, {high}, is under the margin of {margin}",
        "超额的上界 {high} 低于余量 {margin}",
    ),
    "reason_between": (
        "the margin of {margin} lies between the bounds of the excess, {low} and {high}",
        "余量 {margin} 位于超额的下界 {low} 与上界 {high} 之间",
    ),
    "reason_coverage": (
        "the comparison covers {share} of the traffic, less than the {least} asked for: never ship",
        "比较只覆盖流量的 {share}，低于所要求的 {least}：不可发布",
    ),
    "coverage_share_none": ("none", "零"),
    "warning_mixed": (
        "what served changed at {when} UTC: the verdict is on a mixture, as --allow-changes asked",
        "所服务的内容在 {when} UTC 发生变化：按 --allow-changes 的要求，判定针对混合数据",
    ),
    "warning_served": (
        "the candidate's endpoint did not say what it serves: the verdict is on its name only",
        "候选端点没有说明所服务的内容：判定只针对其名称",
    ),
    "warning_references": (
        "pairs of more than one reference are counted together",
        "与多个参考方比较的回答对被合并计数",
    ),
    "warning_chosen": (
        "of the records that the sample chose only {share} are counted: what is left out may differ",
        "抽样选中的记录只有 {share} 被计入：未计入的部分可能不同",
    ),
    "warning_alert": ("an alert is firing", "有 1 个告警触发中"),
    "warning_alerts": ("{count} alerts are firing", "有 {count} 个告警触发中"),
    "range_is_chosen": (
        "Of the chosen time range only. Choose it before you look: the most favourable of many ranges is "
        "no evidence.",
        "仅限所选时间范围。请先选定再查看：从多个范围中挑最有利的不算证据。",
    ),
    "kept": (
        "Made {time} over everything kept; the time range of the page does not move it.",
        "于 {time} 根据全部保留数据得出；不受页面时间范围影响。",
    ),
    "kept_none": (
        "No verdict is kept yet: over so many pairs it takes minutes, so this page does not make it. The "
        "service makes one each hour; to have one now:",
        "尚无保存的判定：回答对很多，计算需要数分钟，本页不会直接计算。服务每小时计算一次；立即计算请运行：",
    ),
    "dissent": (
        "Slices on hold: one that is broken holds the whole",
        "应暂缓的切片：一个切片损坏即暂缓整体",
    ),
    "dissent_one": (
        "{name}: only the candidate faulty in {candidate_only} of {pairs}, {low} to {high}",
        "{name}：{pairs} 个中仅候选方出错 {candidate_only} 个，{low} 至 {high}",
    ),
    "dissent_more": ("{count} more slices are on hold.", "另有 {count} 个切片应暂缓。"),
    "dimension_route": ("route", "路由"),
    "dimension_tenant": ("tenant", "租户"),
    "dimension_language": ("language", "语言"),
    "dimension_prompt_length": ("prompt length", "提示词长度"),
    "dimension_kind": ("kind", "类型"),
    "dimension_served_model": ("served model", "所服务的模型"),
    "dimension_experiment": ("whole experiment", "整个实验"),
    "whole": ("whole", "整体"),
    "chart_bounds": ("excess of candidate-only faults", "仅候选方故障的超额"),
    "chart_low": ("lower bound", "下界"),
    "chart_high": ("upper bound", "上界"),
    "chart_excess": ("excess", "超额"),
    "chart_margin": ("margin", "余量"),
    "chart_pairs": ("pairs", "回答对"),
    "chart_slice": ("slice", "切片"),
    "chart_side": ("beside the margin", "与余量相比"),
    "chart_over": ("over", "高于"),
    "chart_under": ("under", "低于"),
    "chart_across": ("across it", "跨越"),
    "chart_cut": (
        "The whole, and {count} of {all} slices, worst first: by their lower bound. Bars that end at the "
        "edge go on.",
        "整体，以及 {all} 个切片中最差的 {count} 个（按下界由高到低）；止于边缘的条表示超出范围。",
    ),
    "slices_all": ("All {all} slices, worst first", "全部 {all} 个切片，最差的在前"),
    "slices_only": ("only {side} faulty", "仅{side}出错"),
    "slices_low": ("excess from", "超额自"),
    "slices_high": ("to", "至"),
    "slices_hold": ("on hold", "应暂缓"),
    "support": (
        "What supports it: scores, schemas, what served, worst pairs",
        "佐证：评分、模式、服务内容、最差回答对",
    ),
    "support_note": (
        "They decide nothing. The mean is of all scored pairs; the excess over the noise floor is only of "
        "the n requests that were asked twice: how much further the candidate is than the endpoint from "
        "itself, with its 95 % interval of one look. Few requests make it wide; of shares it ends at 1.",
        "这些不参与判定。均值针对全部已评分的回答对；超出噪声基底的量只针对被问两次的 n 个请求：候选方的距离"
        "比端点与自身的距离多多少，区间为单次查看的 95 % 区间。请求越少区间越宽；比例类最多到 1。",
    ),
    "support_score": ("score", "评分"),
    "support_pairs": ("pairs", "回答对"),
    "support_mean": ("mean", "均值"),
    "support_worst": ("worst 1 %", "最差 1 %"),
    "support_floor": ("noise floor", "噪声基底"),
    "support_excess": ("excess over it", "超出基底"),
    "support_interval": ("95 % interval", "95 % 区间"),
    "support_requests": ("n asked twice", "被问两次 n"),
    "within": ("{low} to {high}", "{low} 至 {high}"),
    "floor_not_measured": ("not measured", "未测量"),
    "no_interval": ("no interval", "无区间"),
    "validity_schema": (
        "Of {pairs} pairs whose answers should fit a schema, only the candidate's does not in "
        "{candidate}, only the reference's in {reference}; {noise}",
        "应符合模式的 {pairs} 个回答对中，仅候选方不符合 {candidate} 个，仅参考方不符合 {reference} 个；"
        "{noise}",
    ),
    "validity_json": (
        "Of {pairs} pairs whose answers should be JSON, only the candidate's is not in {candidate}, only "
        "the reference's in {reference}; {noise}",
        "应为 JSON 的 {pairs} 个回答对中，仅候选方不是 {candidate} 个，仅参考方不是 {reference} 个；{noise}",
    ),
    "validity_noise": (
        "the reference against itself differs in {flips} of {pairs}",
        "参考方与自身相比有 {flips}/{pairs} 个不同",
    ),
    "validity_no_noise": ("no noise pair has such answers", "没有此类噪声对"),
    "served": ("What served", "所服务的内容"),
    "served_none": ("No endpoint said what it serves.", "没有端点说明所服务的内容。"),
    "worst": ("Worst pairs", "最差的回答对"),
    "severity": ("severity {number}", "严重度 {number}"),
    "no_id": ("without id", "无编号"),
    "firing_one": ("1 alert is firing", "1 个告警触发中"),
    "firing": ("{count} alerts are firing", "{count} 个告警触发中"),
    "began": ("began {time}", "开始于 {time}"),
    "fired": ("fired {time}", "触发于 {time}"),
    "firing_handled": ("; {count} of them acknowledged or silenced", "；其中 {count} 个已确认或静默"),
    "age": (
        "{pairs} pairs are kept, mirrored within {length}; the newest {age} ago ({time}).",
        "保留了 {pairs} 个回答对，镜像时间跨度 {length}；最新的在 {age}前（{time}）。",
    ),
    "age_one": ("1 pair is kept, of {age} ago ({time}).", "保留了 1 个回答对，在 {age}前（{time}）。"),
    "age_old": (
        "The figures say nothing of what was served since.",
        "这些数字不反映此后所服务的内容。",
    ),
    "age_short": (
        "So short a time may be unlike the rest of a day.",
        "时间太短，可能不代表全天的情况。",
    ),
    "firing_all": ("All {count} that are firing", "全部 {count} 个触发中的告警"),
    "figures": ("Figures", "指标"),
    "figures_hours": ("Of whole hours within the time range.", "按时间范围内的整小时统计。"),
    "n_pairs": ("n = {count} pairs", "n = {count} 个回答对"),
    "unscored_none": ("unscored: no pair has this score", "未评分：没有回答对有此评分"),
    "regressions": ("Regression rate", "回归率"),
    "regressions_help": (
        "Pairs of verdict candidate_worse or candidate_error; the interval is Clopper and Pearson's of "
        "one look. The floor is how often the reference alone is at fault.",
        "判定为 candidate_worse 或 candidate_error 的回答对；区间为单次查看的 Clopper–Pearson 区间。基底"
        "为仅参考方出错的比率。",
    ),
    "regressions_of": (
        "{count} of {pairs} pairs, 95 % {low} to {high}",
        "{pairs} 个中 {count} 个，95 % {low} 至 {high}",
    ),
    "regressions_floor": (
        "floor: the reference alone at fault in {rate} ({count})",
        "基底：仅参考方出错 {rate}（{count} 个）",
    ),
    "regressions_link": ("{count} regressions", "{count} 个回归"),
    "kl": ("Forced KL, mean", "强制 KL 均值"),
    "kl_help": (
        "KL(reference || candidate) on the reference's own tokens, least value consistent with both "
        "reports. A share of the greedy pairs is scored so.",
        "在参考方自身词元上的 KL(参考方 || 候选方)，为与双方报告一致的最小值。只对一部分 greedy 回答对评分。",
    ),
    "nats": ("{number} nats", "{number} nats"),
    "p99": ("p99 {number} nats", "p99 {number} nats"),
    "kl_link": ("pairs by KL", "按 KL 排序的回答对"),
    "similarity": ("Edit similarity, mean", "编辑相似度均值"),
    "similarity_help": (
        "1 is the same text. Cosine is of sentence embeddings and blind to structure.",
        "1 表示文本相同。余弦相似度基于句向量，看不出结构差异。",
    ),
    "p1": ("1 % of pairs at or under {number}", "1 % 的回答对不高于 {number}"),
    "cosine": ("cosine {number} (n = {count})", "余弦 {number}（n = {count}）"),
    "similarity_link": ("pairs by similarity", "按相似度排序的回答对"),
    "schema": ("Schema validity lost", "失去模式有效性"),
    "schema_help": (
        "Of pairs whose reference answer fits its schema: the share whose candidate answer does not.",
        "参考方回答符合模式的回答对中，候选方回答不符合的比例。",
    ),
    "schema_of": ("{count} of {pairs} pairs", "{pairs} 个中 {count} 个"),
    "schema_none": ("unscored: no answer has to fit a schema", "未评分：没有需要符合模式的回答"),
    "schema_floor": (
        "floor: the reference against itself differs in {flips} of {pairs}",
        "基底：参考方与自身相比 {pairs} 个中 {flips} 个不同",
    ),
    "schema_link": ("all {count} with a json fault", "json 类故障：共 {count} 个"),
    "floor": ("floor {number} (asked twice: n = {count})", "基底 {number}（被问两次：n = {count}）"),
    "floor_unknown": ("floor: told by the verdict", "基底：由判定给出"),
    "floor_none": ("floor: not measured", "基底：未测量"),
    "latency_candidate": ("Latency of the candidate, median", "候选方延迟中位数"),
    "latency_reference": ("Latency of the reference, median", "参考方延迟中位数"),
    "latency_delta": ("{number} against the reference", "{number}（相对参考方）"),
    "latency_more": ("p95 {p95}, mean {mean}", "p95 {p95}，均值 {mean}"),
    "ms": ("{number} ms", "{number} ms"),
    "latency_link": ("newest pairs", "最新的回答对"),
    "over_time": ("Over time", "随时间变化"),
    "over_time_note": (
        "A dashed line marks when an endpoint began to serve something else: point at it to see what.",
        "虚线标出端点开始服务其他内容的时刻：将鼠标指向虚线可查看内容。",
    ),
    "marks": ("What served changed", "所服务的内容变更"),
    "mark_line": ("{role} {name}: {before} → {after}", "{role} {name}：{before} → {after}"),
    "axis_time": ("mirrored at ({zone})", "镜像时间 ({zone})"),
    "axis_regressions": ("regression rate", "回归率"),
    "axis_kl": ("forced KL, mean (nats)", "强制 KL 均值 (nats)"),
    "axis_similarity": ("similarity, mean", "相似度均值"),
    "axis_schema": ("schema validity lost", "失去有效性的比例"),
    "axis_latency": ("latency, mean (ms)", "延迟均值 (ms)"),
    "line_edit": ("edit", "编辑"),
    "line_cosine": ("cosine", "余弦"),
    "line_candidate": ("candidate", "候选方"),
    "line_reference": ("reference", "参考方"),
    "line_regressions": ("regressions", "回归"),
    "line_kl": ("forced KL", "强制 KL"),
    "line_schema": ("schema lost", "失去有效性"),
    "chart_none": ("{what}: no pair of this time range has it.", "{what}：此时间范围内没有回答对有此值。"),
    "tip_line": ("what", "内容"),
    "tip_value": ("value", "值"),
    "tip_pairs": ("n (pairs)", "n（回答对）"),
    "verdicts": ("Verdicts", "判定"),
    "verdict_link": ("{verdict} {count} ({share})", "{verdict} {count}（{share}）"),
    "faults": ("Faults on one side only", "仅一侧的故障"),
    "verdicts_note": (
        "Each pair has one verdict. `reference_worse` and `candidate_worse` are more than the pairs with one "
        "side alone at fault: where both are, the one with a kind of fault that the other has not is worse.",
        "每个回答对有一个判定。`reference_worse` 和 `candidate_worse` 不只是单侧出错的回答对：两侧都出错时，"
        "有对方所没有的故障类别的一侧更差。",
    ),
    "faults_note": (
        "Pairs that have the fault on that side only; one pair may have several. `json` counts answers that "
        "should be JSON, with or without a schema: it is not the figure of lost schema validity.",
        "仅该侧有此故障的回答对；一个回答对可有多种故障。`json` 统计应为 JSON 的回答，无论有无模式：不同于"
        "失去模式有效性的指标。",
    ),
    "faults_none": ("No fault on one side only.", "没有仅一侧的故障。"),
    "family": ("family", "类别"),
    "side": ("side", "侧"),
    "side_candidate only": ("candidate only", "仅候选方"),
    "side_reference only": ("reference only", "仅参考方"),
    "fault_link": ("{family}: {count} on the candidate only", "{family}：仅候选方 {count} 个"),
    "accounting": ("Accounting", "核算"),
    "accounting_note": (
        "consumed = compared + skipped + failed + dead-lettered, over everything kept of the experiment; "
        "consumed is counted apart, from the offsets that Kafka delivered.",
        "已消费 = 已比较 + 已跳过 + 失败 + 死信，针对该实验全部保留数据；已消费由 Kafka 投递的偏移量单独"
        "计数。",
    ),
    "accounting_none": (
        "Nothing was delivered by Kafka for this experiment.",
        "Kafka 没有为该实验投递任何记录。",
    ),
    "consumed": ("consumed", "已消费"),
    "compared": ("compared", "已比较"),
    "skipped": ("skipped", "已跳过"),
    "failed": ("failed", "失败"),
    "dead_lettered": ("dead-lettered", "死信"),
    "unaccounted": ("unaccounted", "未核算"),
    "unaccounted_note": (
        "{count} consumed records have no outcome yet, or were lost.",
        "{count} 条已消费记录尚无结果，或已丢失。",
    ),
    "stored_ahead": (
        "{count} of these outcomes are stored ahead of a slower record before them, and count as consumed "
        "once that has its outcome.",
        "其中 {count} 条结果先于前面较慢的记录入库；待该记录有了结果，才计入已消费。",
    ),
    "too_many": (
        "{count} more outcomes are stored than records were consumed.",
        "已存的结果比已消费的记录多 {count} 条。",
    ),
    "lost": ("lost to retention", "因保留期丢失"),
    "lag": ("lag, mean", "滞后均值"),
    "lag_note": (
        "Lag: from Kafka's time to the store, of {count} compared records in the hour up to {time}; at "
        "most {most}.",
        "滞后：从 Kafka 时间到入库，截至 {time} 的一小时内 {count} 条已比较记录；最大 {most}。",
    ),
    "lag_none": ("Lag: no record was compared.", "滞后：没有已比较的记录。"),
    "seconds": ("{number} s", "{number} 秒"),
    "to_operations": ("Lag by partition, dead letters, endpoints", "各分区滞后、死信与端点"),
}
