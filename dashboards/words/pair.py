"""Words of one pair's page."""

TEXTS: dict[str, tuple[str, str]] = {
    "title": ("Pair", "回答对"),
    "choose": ("Choose a pair in the list first.", "请先在列表中选择一个回答对。"),
    "gone": ("This pair is not in the store (any more).", "此回答对（已）不在存储中。"),
}
