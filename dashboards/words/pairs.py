"""Words of the list of pairs."""

TEXTS: dict[str, tuple[str, str]] = {
    "title": ("Pairs", "回答对"),
    "verdict": ("Verdict", "判定"),
    "route": ("Route", "路由"),
    "family": ("Fault family", "故障类别"),
    "request_id": ("Request id contains", "请求 ID 包含"),
    "none": ("No pair passes the filter.", "没有符合条件的回答对。"),
    "no_more": ("No more pair passes the filter.", "没有更多符合条件的回答对。"),
    "first_page": ("First page", "第一页"),
    "next_page": ("Next page", "下一页"),
}
