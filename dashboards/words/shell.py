"""Words of the frame around every page."""

TEXTS: dict[str, tuple[str, str]] = {
    "overview": ("Overview", "概览"),
    "pairs": ("Pairs", "回答对"),
    "pair": ("Pair", "单个回答对"),
    "drift": ("Drift", "漂移"),
    "alerts": ("Alerts", "告警"),
    "golden": ("Golden and rollback", "黄金集与回滚"),
    "operations": ("Operations", "运行"),
    "sql": ("SQL", "SQL"),
    "experiment": ("Experiment", "实验"),
    "window": ("Time range", "时间范围"),
    "window_all": ("Everything kept", "全部保留数据"),
    "window_hours": ("Last {hours} hours", "最近 {hours} 小时"),
    "window_hour": ("Last hour", "最近 1 小时"),
    "window_days": ("Last {days} days", "最近 {days} 天"),
    "window_fixed": ("From … to …", "指定起止时间"),
    "window_start": ("From", "从"),
    "window_end": ("To", "到"),
    "window_bad": (
        "Not a time: {text}. Write it as 2026-11-29 03:00 in the time zone shown.",
        "不是有效时间：{text}。请按所示时区写成 2026-11-29 03:00。",
    ),
    "window_backwards": ("The range ends before it starts.", "时间范围的结束早于开始。"),
    "zone": ("Time zone", "时区"),
    "language": ("Language", "语言"),
    "refresh": ("Refresh", "刷新"),
    "as_of": ("As of {time}", "截至 {time}"),
    "up_to": (
        "Figures count pairs up to {time}; newer ones follow in minutes.",
        "数字统计到 {time} 为止的回答对；更新的将在几分钟内计入。",
    ),
    "reading": ("Reading the store … {seconds} s", "正在读取存储…… {seconds} 秒"),
    "cancel": ("Cancel", "取消"),
    "cancelled": ("The query was cancelled.", "查询已取消。"),
    "again": ("Try again", "重试"),
    "empty": (
        "The store holds no pairs yet. `gnomon demo` fills one; `gnomon run` follows your traffic.",
        "存储中还没有回答对。`gnomon demo` 可以生成一份；`gnomon run` 跟随您的流量。",
    ),
    "nothing": ("Nothing in this time range.", "此时间范围内没有数据。"),
    "away": ("The store cannot be read.", "无法读取存储。"),
    "away_hint": (
        "Is `gnomon run` or the ClickHouse server up? The page reads the store that `gnomon dashboard` was "
        "started on.",
        "`gnomon run` 或 ClickHouse 服务器在运行吗？本页读取启动 `gnomon dashboard` 时指定的存储。",
    ),
    "owner_gone": (
        "The process that owned the store's folder has ended.",
        "占用存储目录的进程已结束。",
    ),
    "owner_gone_hint": (
        "The page looks again once by itself, and at each press of Try again: it asks the folder's next "
        "owner, or opens the folder itself.",
        "本页会自动重试一次，之后每次点击“重试”再查：改向目录的新占用者查询，或自行打开目录。",
    ),
    "refused": ("The store refused the query.", "存储拒绝了查询。"),
    "too_large": (
        "The query went over its limit of time, memory or rows. Narrow the time range or the filters.",
        "查询超出了时间、内存或行数限制。请缩小时间范围或过滤条件。",
    ),
    "no_right": (
        "The store's account may not read this. It needs the role `gnomon_dashboard` (sql/grants/).",
        "存储账号无权读取。需要角色 `gnomon_dashboard`（sql/grants/）。",
    ),
    "old_store": (
        "The store lacks a table or column that this page reads: run `gnomon migrate`.",
        "存储缺少本页需要的表或列：请运行 `gnomon migrate`。",
    ),
    "text_hidden": (
        "Your account does not show the texts of prompts and answers.",
        "您的账号不显示提示词和回答的文本。",
    ),
    "hidden": ("(hidden)", "（已隐藏）"),
    "sign_in": ("Sign in", "登录"),
    "sign_in_why": (
        "This explorer shows mirrored production traffic: sign in to read it.",
        "本浏览器展示镜像的生产流量：请登录后查看。",
    ),
    "sign_out": ("Sign out", "退出登录"),
    "signed_in": ("Signed in as {name}", "已登录：{name}"),
    "sign_in_missing": (
        "Sign-in is required, but no provider is set up: [auth] is missing in Streamlit's secrets.toml "
        "(docs/explorer.md).",
        "要求登录，但没有配置身份提供方：Streamlit 的 secrets.toml 缺少 [auth]（见 docs/explorer.md）。",
    ),
    "link_instead": (
        "{name} of the link is not known here (any more): “{value}”. Shown instead: {shown}",
        "链接中的 {name} 在此（已）无法识别：“{value}”。改为显示：{shown}",
    ),
    "link_left_out": (
        "{name} of the link is not known here (any more): “{value}”. It is left out; the page shows what it "
        "shows without it.",
        "链接中的 {name} 在此（已）无法识别：“{value}”。已忽略；页面按没有该参数显示。",
    ),
    "link_kept": (
        "{name} of the link is not known here (any more): “{value}”. It stays chosen, but nothing "
        "matches it.",
        "链接中的 {name} 在此（已）无法识别：“{value}”。它仍被选中，但没有匹配的内容。",
    ),
    "link_no_number": (
        "{name} of the link is no number that it may be: “{value}”. It is left out.",
        "链接中的 {name} 不是有效数字：“{value}”。已忽略。",
    ),
    "link_more": ("And {count} more values of the link.", "链接中还有 {count} 个值无法识别。"),
    "all": ("All", "全部"),
    "failed": ("The page failed.", "页面出错。"),
    "failed_where": (
        "The log of gnomon dashboard has the reason: number {number}, {time}.",
        "原因见 gnomon dashboard 的日志：编号 {number}，{time}。",
    ),
    "unscored": ("unscored", "未评分"),
}
