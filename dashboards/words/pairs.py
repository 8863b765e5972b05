"""Words of the list of pairs."""

TEXTS: dict[str, tuple[str, str]] = {
    "title": ("Pairs", "回答对"),
    "view_regressions": ("Regressions", "回归"),
    "view_loops": ("Loops on the candidate", "候选方循环"),
    "view_json": ("JSON broken", "JSON 损坏"),
    "view_near_ties": ("Near ties", "近乎平局"),
    "view_all": ("All pairs", "全部回答对"),
    "every": ("all", "全部"),
    "verdict": ("Verdict", "判定"),
    "verdict_help": (
        "Verdicts, causes, fault families and codes go by their names in SQL (docs/glossary.md).",
        "判定、原因、故障类别和代码沿用 SQL 中的名称（见 docs/glossary.md）。",
    ),
    "route": ("Route", "路由"),
    "tenant": ("Tenant", "租户"),
    "language": ("Language of the request", "请求语言"),
    "route_short": ("route", "路由"),
    "tenant_short": ("tenant", "租户"),
    "language_short": ("language", "语言"),
    "family": ("Fault family", "故障类别"),
    "side": ("Fault on", "故障所在"),
    "side_any": ("either side, or none", "任一侧或无"),
    "side_candidate_only": ("the candidate only", "仅候选方"),
    "side_reference_only": ("the reference only", "仅参考方"),
    "sort": ("Sort by", "排序"),
    "sort_worst": ("severity, regressions first", "严重度（回归优先）"),
    "sort_newest": ("newest first", "最新优先"),
    "sort_kl": ("forced KL, largest first", "强制 KL（从大到小）"),
    "sort_similarity": ("similarity, least first", "相似度（从小到大）"),
    "more": ("More filters", "更多过滤条件"),
    "severity_min": ("Severity at least", "严重度不低于"),
    "kl_min": ("Forced KL at least (nats)", "强制 KL 不低于 (nats)"),
    "similarity_max": ("Edit similarity at most", "编辑相似度不高于"),
    "near_tie": ("Only near ties", "仅近乎平局"),
    "near_tie_help": (
        "The answers part where both tokens are almost equally likely: rounding decides.",
        "两个回答在两个词元概率几乎相等处分开：由舍入决定。",
    ),
    "text": ("Words in the prompt or an answer", "提示词或回答中的词"),
    "text_hint": ("all of these words", "须包含全部这些词"),
    "text_help": (
        "Whole words, in any case and order; Chinese, Japanese and accented words wherever they stand. "
        "At most the last 24 hours of the range are searched.",
        "整词匹配，不分大小写和顺序；中文、日文和带重音的词可出现在任意位置。"
        "最多搜索时间范围内最后 24 小时。",
    ),
    "text_hidden": (
        "Your account does not search texts.",
        "您的账号不能搜索文本。",
    ),
    "no_word": (
        "There is no word in it: letters or digits are searched for.",
        "其中没有可搜索的词：请输入字母、数字或汉字。",
    ),
    "searched": (
        "Searched for {words} in prompts and in both answers taken up from {start} to {end}; reasoning and "
        "tool calls are not searched.",
        "已在 {start} 至 {end} 收录的提示词和双方回答中搜索 {words}；不搜索推理过程和工具调用。",
    ),
    "request_id": ("Request id", "请求 ID"),
    "request_id_help": (
        "The whole id; a part of it with * before or behind: *042. A part is slow over millions of pairs.",
        "完整 ID；只写一部分时在前或后加 *：*042。在数百万条中按部分查找较慢。",
    ),
    "none": (
        "No pair passes the filters in this time range.",
        "此时间范围内没有符合条件的回答对。",
    ),
    "no_more": ("No more pair passes the filters.", "没有更多符合条件的回答对。"),
    "rows": ("Pairs {first} to {last}, the last ones.", "第 {first} 至 {last} 条，已到末尾。"),
    "rows_more": ("Pairs {first} to {last}; more follow.", "第 {first} 至 {last} 条，后面还有。"),
    "from_rollup": ("From the rollup of the worst pairs.", "来自最差回答对的汇总。"),
    "from_rollup_window": (
        "From the rollup of the worst pairs: at the edges of the range, an hour with over 200 pairs of one "
        "kind may lack some.",
        "来自最差回答对的汇总：在时间范围的边缘，同类回答对超过 200 条的小时可能缺少部分。",
    ),
    "from_pairs": (
        "Read from all pairs: over millions this takes seconds.",
        "读取自全部回答对：数百万条时需要数秒。",
    ),
    "recent": (
        "This list is of the newest {most} pairs of the range and a few more: those since {start}.",
        "此列表只含时间范围内最新的约 {most} 条回答对：自 {start} 起。",
    ),
    "whole": ("Look through the whole range", "查看整个时间范围"),
    "whole_help": (
        "Over millions of pairs this takes seconds.",
        "数百万条时需要数秒。",
    ),
    "first_page": ("First page", "第一页"),
    "previous_page": ("Previous page", "上一页"),
    "next_page": ("Next page", "下一页"),
    "open": ("Open a pair: number, request id", "打开回答对：序号、请求 ID"),
    "open_row": ("Open pair {number}", "打开第 {number} 条"),
    "open_hint": ("type a number or an id", "输入序号或 ID"),
    "row": ("no.", "序号"),
    "at": ("mirrored at ({zone})", "镜像时间（{zone}）"),
    "candidate": ("Candidate", "候选方"),
    "severity": ("severity", "严重度"),
    "severity_help": (
        "How bad the pair is for the candidate, from 0 to 1 (docs/metrics.md).",
        "该回答对对候选方有多不利，0 到 1（见 docs/metrics.md）。",
    ),
    "candidate_only": ("faults, candidate only", "仅候选方故障"),
    "reference_only": ("faults, reference only", "仅参考方故障"),
    "request": ("request id", "请求 ID"),
    "parts_at": ("parts at token", "分叉词元"),
    "parts_help": (
        "The first token, counted from 0, at which the answers differ; empty if they never do, or if that "
        "cannot be told.",
        "两个回答首次不同的词元（从 0 数起）；从不不同或无法判断时为空。",
    ),
    "kl": ("forced KL (nats)", "强制 KL (nats)"),
    "kl_help": (
        "Mean over the reference's own tokens, least value; empty if unscored: a share of the pairs is "
        "scored.",
        "对参考方自身词元的均值（下界）；未评分为空：只对一部分回答对评分。",
    ),
    "similarity": ("edit similarity", "编辑相似度"),
    "similarity_help": ("1 is equal, 0 is all different.", "1 为相同，0 为完全不同。"),
    "reference_ms": ("reference (ms)", "参考方 (ms)"),
    "candidate_ms": ("candidate (ms)", "候选方 (ms)"),
}
