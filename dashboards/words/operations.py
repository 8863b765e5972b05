"""Words of the operations page."""

TEXTS: dict[str, tuple[str, str]] = {
    "title": ("How is the service doing?", "服务运行得怎么样？"),
    "by_ingestion": (
        "Times on this page are when records were taken up and stored; the time range counts them so.",
        "本页的时间是记录被接收并存储的时间；时间范围也按此计算。",
    ),
    "none": ("No record was taken up in this time range.", "此时间范围内没有接收任何记录。"),
    "rate": ("records a minute, newest", "每分钟记录数（最新）"),
    "records": ("records in the range", "范围内的记录"),
    "failed_metric": ("failed in the range", "范围内失败"),
    "dead_metric": ("dead letters in the range", "范围内死信"),
    "lag_metric": ("lag in the last step, mean", "最后一步的平均滞后"),
    "seconds": ("{number} s", "{number} 秒"),
    "share_of": ("{share} of {count}", "占 {count} 的 {share}"),
    "paused_all": (
        "**Paused by command**: every endpoint, since {time}, by {name}. {why} `gnomon resume` lets them "
        "go on.",
        "**已按命令暂停**：全部端点，自 {time} 起，由 {name} 操作。{why} `gnomon resume` 可恢复。",
    ),
    "paused_one": (
        "**Paused by command**: endpoint {endpoint}, since {time}, by {name}. {why} `gnomon resume` lets "
        "it go on.",
        "**已按命令暂停**：端点 {endpoint}，自 {time} 起，由 {name} 操作。{why} `gnomon resume` 可恢复。",
    ),
    "throughput": ("Throughput", "吞吐量"),
    "kind_compared": ("compared", "已比较"),
    "kind_skipped": ("skipped", "跳过"),
    "kind_failed": ("failed", "失败"),
    "kind_dead_letter": ("dead-lettered", "死信"),
    "axis_time": ("time ({zone})", "时间 ({zone})"),
    "axis_rate": ("records a minute", "每分钟记录数"),
    "axis_lag": ("lag (s)", "滞后（秒）"),
    "axis_tokens": ("tokens", "词元"),
    "axis_day": ("day (UTC)", "日期 (UTC)"),
    "outcome": ("outcome", "结果"),
    "count": ("records", "记录数"),
    "step": (
        "A bar is {minutes} min. {source} Pairs are those of this candidate; the others are the "
        "experiment's.",
        "每柱 {minutes} 分钟。{source} 回答对属于此候选方，其余属于整个实验。",
    ),
    "source_rolled": ("From the rollups, some minutes behind.", "来自汇总，滞后数分钟。"),
    "source_raw": ("Counted from the stored records.", "由存储的记录直接统计。"),
    "why_not": ("Why records were not compared", "记录未被比较的原因"),
    "why_none": ("Every record of the range was compared.", "范围内的每条记录都已比较。"),
    "reason": ("reason", "原因"),
    "share": ("share", "占比"),
    "lag": ("Lag", "滞后"),
    "lag_mean": ("mean", "平均"),
    "lag_max": ("longest", "最长"),
    "lag_note": (
        "Lag is the time from Kafka's timestamp of a record to its row in the store, over compared "
        "records: waiting in Kafka, both answers and the comparison. Records that are not read yet have "
        "none: only the running service knows how many they are (`gnomon_partition_lag_records` on its "
        "/metrics).",
        "滞后指从记录的 Kafka 时间戳到写入存储的时间，只统计已比较的记录：包括在 Kafka 中的等待、双方回答"
        "与比较。尚未读取的记录没有滞后：其数量只有运行中的服务知道（/metrics 中的 `gnomon_partition_lag_"
        "records`）。",
    ),
    "partitions": ("Partitions", "分区"),
    "partitions_none": (
        "No range of offsets was delivered: these records were compared without Kafka (`gnomon replay`), "
        "or before the ranges were kept.",
        "没有投递过偏移量区间：这些记录不是通过 Kafka 比较的（`gnomon replay`），或早于区间记录。",
    ),
    "partitions_capped": ("Only the {most} that were delivered last.", "只列出最近投递的 {most} 个。"),
    "group": ("consumer group", "消费组"),
    "topic": ("topic", "主题"),
    "partition": ("partition", "分区"),
    "next_offset": ("next offset", "下一偏移量"),
    "delivered": ("delivered", "已投递"),
    "lost": ("lost to retention", "因保留期丢失"),
    "last_delivered": ("last delivered ({zone})", "最近投递（{zone}）"),
    "partition_pairs": ("n, last hour", "n（最近一小时）"),
    "partition_lag": ("lag, mean (s)", "平均滞后（秒）"),
    "partition_lag_max": ("lag, longest (s)", "最长滞后（秒）"),
    "partition_note": (
        "The lag is over this candidate's pairs of the last hour in which there are any.",
        "滞后按此候选方有回答对的最近一小时统计。",
    ),
    "endpoints": ("Endpoints", "端点"),
    "endpoints_none": ("No settings of this experiment are stored.", "存储中没有此实验的设置。"),
    "endpoint": ("endpoint", "端点"),
    "role": ("role", "角色"),
    "role_reference": ("reference", "参考方"),
    "role_reference_b": ("second reference", "第二参考方"),
    "role_candidate": ("candidate", "候选方"),
    "state": ("state", "状态"),
    "state_paused": ("‖ paused", "‖ 已暂停"),
    "state_budget": ("✕ budget used up", "✕ 预算已用完"),
    "state_failing": ("▲ was away", "▲ 曾不可达"),
    "state_fine": ("● no failure", "● 无失败"),
    "away": ("failed, 24 h", "失败（24 小时）"),
    "last_failed": ("last failure ({zone})", "最近失败（{zone}）"),
    "errors": ("errors (pairs)", "错误（回答对）"),
    "calls_today": ("calls today", "今日调用"),
    "tokens_today": ("tokens today", "今日词元"),
    "budget": ("budget a day", "每日预算"),
    "budget_used": ("of the budget", "预算使用率"),
    "served": ("serves", "提供"),
    "endpoints_note": (
        "Failed records say nothing about the models: the endpoint was away, paused or over its budget. "
        "Errors are evidence: a 500, a hang or a cut stream in {count} pairs of the range. Tokens and "
        "calls are of this UTC day and of all experiments, as a budget counts them; an empty budget is "
        "none, or was set by an older version. Whether a breaker is open now: "
        "`gnomon_endpoint_breaker_open` on /metrics.",
        "失败记录不说明模型好坏：端点不可达、被暂停或超出预算。错误则是证据：范围内 {count} 个回答对中的 "
        "500、挂起或中断的流。词元与调用按当前 UTC 日、跨所有实验统计，与预算口径一致；预算为空表示未设置"
        "，或由旧版本写入。断路器当前是否打开见 /metrics 的 `gnomon_endpoint_breaker_open`。",
    ),
    "errors_link": ("Pairs with an error", "含错误的回答对"),
    "failures": ("Failed records of the last 24 hours", "最近 24 小时的失败记录"),
    "failures_none": ("No record failed in the last 24 hours.", "最近 24 小时没有失败记录。"),
    "unnamed": ("(not named)", "（未注明）"),
    "by_pause": ("by a pause", "因暂停"),
    "yes": ("yes", "是"),
    "token_chart": ("Tokens by day", "每日词元"),
    "token_none": ("No tokens were counted in the last {days} days.", "最近 {days} 天没有统计到词元。"),
    "token_note": (
        "Prompt and answer tokens of all calls, forced scoring and retries included; {share} of them are "
        "estimated, where a server told none.",
        "所有调用的提示与回答词元，包括强制评分与重试；其中 {share} 为估计值（服务器未报告）。",
    ),
    "orders": ("Orders to pause and resume ({count})", "暂停与恢复命令（{count}）"),
    "ordered_at": ("at ({zone})", "时间（{zone}）"),
    "action": ("order", "命令"),
    "all_endpoints": ("(every endpoint)", "（全部端点）"),
    "ordered_by": ("by", "操作人"),
    "why": ("why", "原因"),
    "letters": ("Dead letters", "死信"),
    "letters_none": ("No dead letter in this time range.", "此时间范围内没有死信。"),
    "letters_newest": ("The newest {most}; select one to see why.", "最新 {most} 条；选择一条查看原因。"),
    "letters_hidden": (
        "Your account does not show what dead letters hold: only where they are and why they could not "
        "be read.",
        "您的账号不显示死信内容：只显示其位置和无法读取的原因。",
    ),
    "letter_reason": ("Only this reason", "只看此原因"),
    "any_reason": ("every reason", "全部原因"),
    "position": ("position", "位置"),
    "guess": ("looks like", "看起来像"),
    "source": ("what", "对象"),
    "taken_at": ("taken up ({zone})", "接收时间（{zone}）"),
    "replayed": ("sent again ({zone})", "重新发送（{zone}）"),
    "newest_at": ("newest ({zone})", "最新（{zone}）"),
    "detail": ("What was seen", "所见内容"),
    "redacted": ("Redaction changed what is stored of it.", "脱敏规则修改过存储的内容。"),
    "letter_show": (
        "See it whole, or send it again when the fault is mended:",
        "查看完整内容，或在修复后重新发送：",
    ),
    "letter_bytes": ("Show its first bytes", "显示前若干字节"),
    "letter_bytes_help": (
        "Read from the store only now: it may hold anything, also prompts.",
        "此时才从存储读取：其中可能有任何内容，包括提示词。",
    ),
    "letter_no_value": ("The record had no value.", "该记录没有值。"),
    "letter_gone": ("This letter is not stored any more.", "此死信已不在存储中。"),
    "letter_size": (
        "The first {shown} of {count} bytes, as text (what is no UTF-8 as `\\x..`), then as hex. "
        "Headers: {headers}.",
        "共 {count} 字节，先以文本显示前 {shown} 字节（非 UTF-8 写作 `\\x..`），再以十六进制显示。消息头"
        "：{headers}。",
    ),
    "no_headers": ("none", "无"),
    "accounting": ("Accounting by hour", "按小时核算"),
    "accounting_note": (
        "Over everything kept: consumed {consumed} = compared {compared} + skipped {skipped} + failed "
        "{failed} + dead-lettered {dead_lettered} - {stored_ahead} stored ahead of a slower record; "
        "{unaccounted} have no outcome. A record that "
        "failed and was compared when it came again is in both columns of the hours, and counts as "
        "compared only in the sum. The newest {most} hours with a record are listed.",
        "全部保留数据：已消费 {consumed} = 已比较 {compared} + 跳过 {skipped} + 失败 {failed} + 死信 {dea"
        "d_lettered} - 先于较慢记录入库 {stored_ahead}；"
        "{unaccounted} 条没有结果。先失败、再次到达后被比较的记录在小时表中两列都计，在总数"
        "中只计为已比较。列出最近 {most} 个有记录的小时。",
    ),
    "hour": ("hour ({zone})", "小时（{zone}）"),
    "storage": ("Storage", "存储"),
    "storage_none": (
        "The store's account sees no table: apply `sql/grants/dashboard.sql` again.",
        "存储账号看不到任何表：请重新应用 `sql/grants/dashboard.sql`。",
    ),
    "storage_denied": (
        "The store's account may not read `system.parts`: apply `sql/grants/dashboard.sql` again.",
        "存储账号无权读取 `system.parts`：请重新应用 `sql/grants/dashboard.sql`。",
    ),
    "storage_total": (
        "{size} on disk, {ratio} times as much uncompressed; {rows} rows in {tables} tables. Of the host "
        "that answered.",
        "磁盘占用 {size}，解压后为其 {ratio} 倍；{tables} 张表共 {rows} 行。仅为应答主机的数据。",
    ),
    "table": ("table", "表"),
    "rows": ("rows", "行数"),
    "disk": ("on disk (MiB)", "磁盘 (MiB)"),
    "bytes_a_row": ("bytes a row", "每行字节"),
    "compression": ("compression", "压缩比"),
    "parts": ("parts", "数据片段"),
    "cost": ("Replay cost", "回放成本"),
    "cost_toggle": ("Count the calls", "统计调用"),
    "cost_help": (
        "Reads every answer of the days; over millions it takes seconds.",
        "读取这些天的全部回答；数百万条时需要数秒。",
    ),
    "cost_hidden": (
        "Your account does not read the answers that the calls are counted from; tokens by day are above.",
        "您的账号不能读取用于统计调用的回答；每日词元见上文。",
    ),
    "cost_none": ("No call was stored in the last {days} days.", "最近 {days} 天没有存储任何调用。"),
    "cost_note": (
        "The recipe @replay_cost over {days} days: the servers' own counts. Calls of forced scoring and "
        "of retries are not stored, so not in it; the tokens by day above have them.",
        "配方 @replay_cost，统计 {days} 天：采用服务器自报数。强制评分与重试的调用未存储，故不在其中；上"
        "文的每日词元包含它们。",
    ),
    "input_price": ("Price of a million prompt tokens", "每百万提示词元价格"),
    "output_price": ("Price of a million answer tokens", "每百万回答词元价格"),
    "cost_total": ("cost", "成本"),
    "cost_sum": (
        "{cost} for {calls} calls, {failed} of which failed.",
        "{calls} 次调用共 {cost}，其中 {failed} 次失败。",
    ),
    "to_sql": ("Open as SQL", "以 SQL 打开"),
    "day": ("day (UTC)", "日期 (UTC)"),
    "calls": ("calls", "调用"),
    "failed_calls": ("failed", "失败"),
    "uncounted": ("without a count", "未计数"),
    "prompt_tokens": ("prompt tokens", "提示词元"),
    "completion_tokens": ("answer tokens", "回答词元"),
    "busy": ("busy (s)", "占用（秒）"),
}
