"""Words of the SQL page."""

TEXTS: dict[str, tuple[str, str]] = {
    "title": ("Ask the store", "查询存储"),
    "mode_recipe": ("Recipes", "配方"),
    "mode_own": ("Your own SQL", "自写 SQL"),
    "mode": ("What to ask", "查询方式"),
    "own_hidden": (
        "Your account does not show texts, so it runs recipes that read none.",
        "您的账号不显示文本，因此只能运行不读取文本的配方。",
    ),
    "recipe": ("Recipe", "配方"),
    "grain": ("One row is: {grain}", "（说明按配方文件的英文原文显示）每行：{grain}"),
    "parameter_help": (
        "{type}. {meaning}. Without a value: {default}",
        "{type}。{meaning}。留空则为：{default}",
    ),
    "statement": ("The SQL", "SQL 语句"),
    "box": ("A statement that reads", "只读语句"),
    "box_help": (
        "SELECT, WITH, SHOW, DESCRIBE, EXISTS or EXPLAIN. {experiment} and {candidate} are bound to "
        "those of the side bar.",
        "SELECT、WITH、SHOW、DESCRIBE、EXISTS 或 EXPLAIN。{experiment} 与 {candidate} 绑定为侧栏所选。",
    ),
    "views": ("Views ({count})", "视图（{count}）"),
    "views_note": (
        "Each is described column by column in docs/data-dictionary.md; `DESCRIBE pairs_v1` lists the "
        "columns of one.",
        "各视图逐列说明见 docs/data-dictionary.md；`DESCRIBE pairs_v1` 可列出某视图的列。",
    ),
    "limits": (
        "Limits: {seconds} s, the first {rows} rows or {size} of them, read-only. The account's own "
        "limits hold besides.",
        "限制：{seconds} 秒；前 {rows} 行或 {size}；只读。另受账号自身限制。",
    ),
    "run": ("Run", "运行"),
    "press": ("Press Run to ask the store.", "点击“运行”以查询存储。"),
    "long": (
        "Too long for the address bar: a link to this page will not have the statement.",
        "语句过长，无法放入地址栏：本页链接将不包含该语句。",
    ),
    "refused": ("This statement is not sent.", "未发送此语句。"),
    "empty": ("Write a statement first.", "请先输入语句。"),
    "error": ("The store could not run it.", "存储无法执行。"),
    "error_at": (
        "The store could not run it: see line {line}, column {column}.",
        "存储无法执行：见第 {line} 行第 {column} 列。",
    ),
    "not_there": (
        "The store holds no table, column or database of a name in your statement. The views are listed "
        "above.",
        "存储中没有语句所写的表、列或数据库。可用视图见上方列表。",
    ),
    "owner_gone": (
        "The process that owned the store's folder has ended; the page asked once more.",
        "占用存储目录的进程已结束；本页已重新查询一次。",
    ),
    "too_large": (
        "The recipe went over its limit of time, memory or rows. Give it smaller values, such as fewer days.",
        "配方超出了时间、内存或行数限制。请缩小参数值，例如减少天数。",
    ),
    "too_large_own": (
        "The statement went over its limit of time, memory or rows. Let it read less: a condition on time, "
        "fewer columns, fewer groups.",
        "语句超出了时间、内存或行数限制。请减少读取量：加时间条件、减少列或分组。",
    ),
    "bad_whole": (
        "{name}: a whole number from {low} to {high}, not {value}.",
        "{name}：应为 {low} 到 {high} 的整数，而不是 {value}。",
    ),
    "bad_number": (
        "{name}: a number such as 0.05, not {value}.",
        "{name}：应为数字，如 0.05，而不是 {value}。",
    ),
    "bad_time": (
        "{name}: a time in UTC such as 2026-11-29 03:00:00, from {low} to {high}, not {value}.",
        "{name}：应为 UTC 时间，如 2026-11-29 03:00:00，年份 {low} 到 {high}，而不是 {value}。",
    ),
    "none": ("No row. The statement ran; nothing fits.", "没有结果行。语句已执行，但没有匹配的数据。"),
    "cost": (
        "{rows} rows in {here} s, of which the store took {store} s and read {read} rows, {size}. As of "
        "{time}.",
        "{here} 秒内得到 {rows} 行，其中存储耗时 {store} 秒，读取 {read} 行、{size}。截至 {time}。",
    ),
    "cost_unknown": ("{rows} rows in {here} s. As of {time}.", "{here} 秒内得到 {rows} 行。截至 {time}。"),
    "cost_cut": (
        "The store's figures are those of when its answer began: there was more to come.",
        "存储的数字为应答开始时的值：之后还有更多数据。",
    ),
    "cut": (
        "Only the first {rows} rows are here: the answer is longer than the limit. Order and narrow it, "
        "or take the file.",
        "这里只有前 {rows} 行：结果超出限制。请排序并缩小范围，或下载文件。",
    ),
    "shown": (
        "The table shows the first {rows} of {count} rows; the file has all of them.",
        "表格只显示 {count} 行中的前 {rows} 行；文件包含全部。",
    ),
    "table": ("Table", "表格"),
    "chart": ("Chart", "图表"),
    "download": ("CSV", "CSV"),
    "download_help": ("The rows here.", "此处的全部行。"),
    "download_long_help": (
        "Asked anew: at most {rows} rows or {size}; where there are more, the file ends there. `gnomon "
        "sql --format csv` has no such limit.",
        "重新查询：最多 {rows} 行或 {size}，超出部分不在文件中。`gnomon sql --format csv` 无此限制。",
    ),
    "download_note": (
        "Times are UTC. Text that begins with =, +, -, @, tab or a line end has an apostrophe in front, "
        "so that no spreadsheet runs it.",
        "时间为 UTC。以 =、+、-、@、制表符或换行开头的文本前加了撇号，避免被电子表格当作公式执行。",
    ),
    "kind": ("Kind of chart", "图表类型"),
    "kind_line": ("line", "折线"),
    "kind_bar": ("bars", "柱状"),
    "kind_points": ("points", "散点"),
    "x": ("x", "x"),
    "y": ("y", "y"),
    "by": ("Colour by", "按颜色区分"),
    "by_none": ("(one colour)", "（单色）"),
    "chart_none": ("No column of numbers to draw.", "没有可绘制的数值列。"),
    "chart_cut": ("The chart draws the first {rows} rows.", "图表只绘制前 {rows} 行。"),
    "chart_values": (
        "Only the {count} values of {column} with most rows are drawn.",
        "只绘制 {column} 中行数最多的 {count} 个值。",
    ),
}
