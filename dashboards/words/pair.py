"""Words of one pair's page."""

TEXTS: dict[str, tuple[str, str]] = {
    "title": ("Pair", "单个回答对"),
    "choose": ("Choose a pair in the list first.", "请先在列表中选择一个回答对。"),
    "gone": (
        "This pair is not in the store (any more).",
        "此回答对（已）不在存储中。",
    ),
    "to_list": ("Back to the list", "返回列表"),
    "previous": ("Previous in the list", "列表中的上一条"),
    "next": ("Next in the list", "列表中的下一条"),
    "place_listed": ("{number} of {count} on the list's page", "列表本页第 {number} / {count} 条"),
    "place_worst": (
        "{number} of {count} on the first page of all pairs, worst first",
        "全部回答对（最差优先）首页第 {number} / {count} 条",
    ),
    "place_none": (
        "No previous or next: this pair is not on the first page of all pairs, worst first. Open it from a "
        "list to walk through that.",
        "无上一条或下一条：本对不在全部回答对（最差优先）的首页。从列表打开即可逐条浏览。",
    ),
    "reference": ("reference", "参考方"),
    "candidate": ("candidate", "候选方"),
    "side": ("side", "一侧"),
    "cause": ("probable cause", "可能原因"),
    "cause_help": (
        "What the findings point at, for the whole answer; no proof.",
        "由发现推断的方向；并非定论。",
    ),
    "cause_numeric": (
        "Numbers behind the tokens are broken or odd, the text is garbage, or one side alone loops at "
        "temperature 0, where the tokens follow from the numbers: kernels, weights, caches.",
        "词元背后的数值损坏或异常、文本为乱码，或在 temperature 为 0（词元由数值决定）时仅一侧循环：内核、"
        "权重、缓存。",
    ),
    "cause_sampler": (
        "The choosing of tokens, one after the other, went astray: a loop, a stall, a distribution that "
        "collapsed, or an answer that hung. Not told at temperature 0, where nothing is sampled; only older "
        "pairs say it there too.",
        "逐词元采样的过程出了问题：循环、停滞、分布坍缩或回答挂起。temperature 为 0 时不采样，"
        "不再给出此原因；较旧的回答对仍可能如此显示。",
    ),
    "cause_truncation": ("The answer was cut or ended too early.", "回答被截断或过早结束。"),
    "cause_request": (
        "The request itself: refused by the endpoint, or faulty.",
        "请求自身：被端点拒绝或有误。",
    ),
    "cause_transport": (
        "The stream on its way: it was cut, or its events are malformed.",
        "传输中的流：被中断，或事件格式有误。",
    ),
    "cause_memory": ("The endpoint had no memory left.", "端点内存或显存不足。"),
    "cause_engine": (
        "The endpoint failed, for no reason that it names, or it stalled at temperature 0.",
        "端点出错而未说明原因，或在 temperature 为 0 时停滞。",
    ),
    "cause_history": (
        "An earlier answer in the conversation already had the fault.",
        "对话中更早的回答已有此故障。",
    ),
    "cause_unknown": ("Nothing points at a cause.", "没有指向任何原因的线索。"),
    "severity": ("severity {severity} of 1", "严重度 {severity}（满分 1）"),
    "prompt": ("Prompt, its last turn", "提示词（最后一轮）"),
    "prompt_gone": ("The request is no longer kept.", "请求已不再保存。"),
    "reasons_more": ("{count} more reasons", "另外 {count} 条原因"),
    "schema_unread": (
        "Not held against the schema, as it is no JSON: {sides}.",
        "不是 JSON，未按模式检查：{sides}。",
    ),
    "prompt_earlier": (
        "Earlier messages: {count}, in the raw request below.",
        "之前还有 {count} 条消息，见下方原始请求。",
    ),
    "facts": (
        "mirrored {mirrored} · taken up {ingested} · mode {mode}",
        "镜像于 {mirrored} · 收录于 {ingested} · 模式 {mode} · 原因与发现按存储的英文原文显示",
    ),
    "parts": (
        "The answers part at token {position} (counted from 0):",
        "两个回答在词元 {position} 处分开（从 0 数起）：",
    ),
    "near_tie": ("A near tie: rounding decides.", "近乎平局：由舍入决定。"),
    "never_parts": (
        "The answers never part, token for token.",
        "逐词元比较，两个回答从未分开。",
    ),
    "parts_unknown": (
        "Where the answers part cannot be told token for token.",
        "无法逐词元判断两个回答在何处分开。",
    ),
    "view": ("View", "视图"),
    "view_plain": ("Plain, evidence marked", "原文（标出证据）"),
    "view_words": ("Word diff", "词级差异"),
    "view_tokens": ("Token heat map", "词元热图"),
    "view_json": ("JSON by path", "JSON 按路径"),
    "number": ("Coloured by", "着色依据"),
    "number_probability": ("probability of the token", "词元概率"),
    "number_entropy": ("entropy", "熵"),
    "number_kl": ("KL", "KL"),
    "legend_probability": (
        "The less likely the token was to its own side, the fuller the colour: none at 100 %, full at 0 %.",
        "词元对其自身一侧越不可能，颜色越浓：100 % 无色，0 % 满色。",
    ),
    "legend_entropy": (
        "Least entropy of the token's distribution: none at 0, full from 3 nats on. Behind the parting it is "
        "taken from the 5 stored alternatives.",
        "词元分布的熵下界：0 为无色，3 nats 起为满色。分叉之后由所存的 5 个备选计算。",
    ),
    "legend_kl": (
        "KL(reference || candidate), least value: none at 0, full from 2 nats on. Only where both sides had "
        "the same text before them: up to the parting, and on all of the reference's tokens where they were "
        "forced ({forced}).",
        "KL(参考方 || 候选方) 的下界：0 为无色，2 nats 起为满色。仅在双方前文相同处有值：分叉之前，"
        "以及强制评分的参考方全部词元（{forced}）。",
    ),
    "forced_here": ("this pair was", "本对已评分"),
    "forced_not": ("this pair was not", "本对未评分"),
    "legend_hover": (
        "Point at a token, or reach it with Tab, for its alternatives.",
        "将鼠标指向词元，或用 Tab 键移到词元，可查看备选。",
    ),
    "legend_plain": (
        "Marked: evidence of findings.",
        "标记处：发现的证据。",
    ),
    "legend_words": (
        "Marked: words that the other answer does not have at that place.",
        "标记处：另一回答在该处没有的词。",
    ),
    "legend_token": ("≠ is the token where the answers part.", "≠ 为两个回答分开的词元。"),
    "legend_text": (
        "≠ is the place where the texts first differ.",
        "≠ 为两段文本首次不同之处。",
    ),
    "unlike": (
        "The tokens are not the text that the server sent:",
        "词元与服务器发送的文本不一致：",
    ),
    "unlike_before": (
        "the {side}'s begin with “{text}”, which its text lacks",
        "{side}的词元以“{text}”开头，其文本中没有",
    ),
    "unlike_other": (
        "the {side}'s do not spell its text",
        "{side}的词元拼不出其文本",
    ),
    "no_tokens": (
        "No tokens are kept for this pair: the endpoint gave no log-probabilities, or they are past their "
        "14 days.",
        "此回答对没有保存词元：端点未返回对数概率，或已超过 14 天保存期。",
    ),
    "tokens_cut": (
        "{count} tokens have log-probabilities; the answer has {all}.",
        "{count} 个词元有对数概率；回答共 {all} 个。",
    ),
    "alternatives": ("What each side thought there", "双方在此处的概率"),
    "token": ("token", "词元"),
    "position": ("token, from 0", "词元（从 0 数起）"),
    "probability_of": ("{side}, probability", "{side}概率"),
    "alternatives_note": (
        "Of the 5 stored alternatives a side; empty: not among them.",
        "取自每侧所存的 5 个备选；空白表示不在其中。",
    ),
    "note_parting": ("≠ here the answers part", "≠ 两个回答在此分开"),
    "note_text": ("≠ here the texts first differ", "≠ 两段文本在此首次不同"),
    "note_chosen": ("token {position} {token}", "词元 {position} {token}"),
    "note_end": ("position {position}: the answer ends", "位置 {position}：回答结束"),
    "note_entropy": ("entropy at least {nats} nats", "熵不低于 {nats} nats"),
    "note_kl": ("KL at least {nats} nats", "KL 不低于 {nats} nats"),
    "note_apart": (
        "behind the parting: the other side had another text before it",
        "分叉之后：另一侧的前文已不同",
    ),
    "impossible": ("not told or impossible", "未知或不可能"),
    "left_out": ("[{count} characters in all are left out]", "[共省略 {count} 个字符]"),
    "gap": ("[… cut here …]", "[……此处省略……]"),
    "cut_pieces": ("[cut here: too many pieces to show]", "[此处截断：片段过多]"),
    "cut_words": (
        "[cut here: only the first 8,000 words and signs are compared]",
        "[此处截断：只比较前 8,000 个词和符号]",
    ),
    "answer_of": ("{side}'s answer", "{side}的回答"),
    "answer_facts": (
        "finish: {finish} · {tokens} tokens · {total} ms",
        "结束原因：{finish} · {tokens} 词元 · {total} ms",
    ),
    "reused": ("known from an earlier experiment", "取自先前的实验"),
    "failed": ("failed", "失败"),
    "not_kept": ("No longer kept.", "已不再保存。"),
    "empty_answer": ("(empty)", "（空）"),
    "reasoning": ("Reasoning", "推理过程"),
    "json_valid": ("JSON, valid", "JSON 有效"),
    "json_repaired": (
        "not JSON; compared as json-repair mends it",
        "不是有效 JSON；按 json-repair 修复后比较",
    ),
    "json_broken": ("not JSON", "不是 JSON"),
    "json_empty": ("empty", "空"),
    "json_count": (
        "{differing} of {count} paths differ.",
        "{count} 个路径中有 {differing} 个不同。",
    ),
    "json_all": ("Show equal paths too", "同时显示相同的路径"),
    "json_none": ("Neither answer is JSON.", "两个回答都不是 JSON。"),
    "json_cut": ("The first {count} are shown.", "只显示前 {count} 个。"),
    "schema_errors": ("Schema errors", "模式错误"),
    "schema_ok": ("No schema error.", "没有模式错误。"),
    "schema_none": (
        "The request carries no JSON Schema; a route's own shows in the findings.",
        "请求未带 JSON Schema；路由自身的模式错误见“发现”。",
    ),
    "path": ("path", "路径"),
    "differs": ("differs", "不同"),
    "message": ("message", "说明"),
    "tools": ("Tool calls", "工具调用"),
    "findings": ("Findings", "发现"),
    "no_findings": (
        "No detector reported anything on either answer.",
        "没有检测器在任一回答上报告问题。",
    ),
    "family": ("family", "类别"),
    "code": ("code", "代码"),
    "is_fault": ("fault", "故障"),
    "span": ("evidence at", "证据位置"),
    "measured": ("measured", "测得"),
    "threshold": ("limit", "阈值"),
    "characters": ("characters {start} to {end}", "字符 {start} 至 {end}"),
    "tokens": ("tokens {start} to {end}", "词元 {start} 至 {end}"),
    "forced": (
        "Forced positions: the candidate on the reference's own tokens",
        "强制位置：候选方对参考方自身词元的评分",
    ),
    "forced_none": (
        "Not scored on the reference's tokens: {reason}.",
        "未在参考方词元上评分：{reason}。",
    ),
    "forced_not_chosen": (
        "A share of the greedy pairs is scored on the reference's own tokens; this one is not among them.",
        "只有一部分 greedy 回答对会在参考方词元上评分；本对不在其中。",
    ),
    "reference_first": ("reference's first choice", "参考方首选"),
    "candidate_first": ("candidate's first choice", "候选方首选"),
    "reference_logprob": ("reference's log-probability", "参考方对数概率"),
    "candidate_logprob": ("candidate's log-probability", "候选方对数概率"),
    "kl_axis": ("KL, least (nats)", "KL 下界 (nats)"),
    "logprob_axis": ("log-probability (nats)", "对数概率 (nats)"),
    "timings": ("Timings", "耗时"),
    "first_token": ("first token (ms)", "首词元 (ms)"),
    "total": ("total (ms)", "总计 (ms)"),
    "tokens_per_s": ("tokens a second", "每秒词元数"),
    "prompt_tokens": ("prompt tokens", "提示词元数"),
    "answer_tokens": ("answer tokens", "回答词元数"),
    "notes": ("notes", "备注"),
    "scores": ("Scores", "评分"),
    "score": ("score", "评分项"),
    "value": ("value", "值"),
    "why_not": ("why unscored", "未评分原因"),
    "raw": ("Raw request and answers", "原始请求与回答"),
    "raw_request": ("Mirrored request", "镜像请求"),
    "raw_production": ("Production's own answer", "生产环境的回答"),
    "raw_sent": ("Sent to the {side}", "发送给{side}的请求"),
    "raw_answer": ("Raw text of the {side}", "{side}的原始文本"),
    "redacted": (
        "The redaction rules changed this request before it was stored.",
        "此请求在存储前已被脱敏规则修改。",
    ),
    "replay": ("Run it again", "重新运行"),
    "replay_note": (
        "gnomon.toml describes the new experiment; its name must be another than {experiment}. With "
        "--dry-run nothing is asked.",
        "gnomon.toml 描述新的实验，其名称不能是 {experiment}。加 --dry-run 则不会发出请求。",
    ),
    "same": ("The same request elsewhere", "相同请求的其他回答对"),
    "same_none": (
        "No other pair of this very request, of any experiment, within 7 days.",
        "7 天内任何实验中都没有此请求的其他回答对。",
    ),
    "alike": ("Alike: the worst of route {route} with {what}", "类似：路由 {route} 中{what}的最差回答对"),
    "alike_family": ("a fault of family {families}", "有 {families} 类故障"),
    "alike_verdict": ("verdict {verdict}", "判定为 {verdict}"),
    "alike_none": ("No other pair of this kind.", "没有其他此类回答对。"),
}
