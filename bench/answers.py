"""Answers to measure with: made-up words, English prose, JSON and Chinese, each token with its list."""

from __future__ import annotations

import random
import re
import string
from typing import Any

TOKENS, ALTERNATIVES = 200, 20
_PIECE = re.compile(r" ?[A-Za-z]{1,7}|[0-9]{1,3}|\n+| +|[\u3400-\u9fff]{1,2}|[^\w\s]|\w")

_PROSE = (
    "The ferry leaves the north pier every morning at seven and reaches the island before the shops open. ",
    "Most of the people on board are workers who have taken the same seats for years. ",
    "In winter the crossing takes an hour longer, because the captain follows the coast. ",
    "Nobody complains about it; there is coffee in the cabin, and the windows are wide and clean. ",
    "On the island itself, a narrow road climbs from the harbour to a village with two schools. ",
    "Visitors usually walk, although a small bus waits for those who bring luggage or children.\n\n",
    "What they find at the top is not a museum but a place where things are still made by hand. ",
    "A boat builder, whose father built boats too, explains how green oak bends when it has been steamed. ",
    "His daughter keeps the accounts, answers letters from abroad, and decides which orders to accept. ",
    "They have never advertised, but the list of customers has grown since the bridge was cancelled. ",
    "If you ask them about the future, they shrug: wood will grow, and boats will float. ",
    "Later in the day the wind turns, and the smell of tar and bread moves down towards the water.\n\n",
    "Anyone who wants to stay overnight should write ahead, since the only hotel has nine rooms. ",
    "The evening ferry is the last chance to return, and its horn sounds twice before it leaves. ",
    "From the stern you can watch the lights of the village until the headland hides them. ",
    "It is a short journey, yet it leaves the impression that one has been very far away. ",
)
_CHINESE = (
    "每天早上七点，渡船从北码头出发，在商店开门之前到达小岛。",
    "船上的乘客大多是工人，多年来他们总是坐在同样的位置上。",
    "冬天的航程要多花一个小时，因为船长会沿着海岸行驶，避开风浪。",
    "没有人抱怨这件事；舱里有热咖啡，窗户也足够宽，可以看到很好的风景。",
    "岛上有一条窄路，从港口一直通到山上的村庄，那里有一座教堂和两所学校。",
    "游客通常步行上山，不过也有一辆小巴士等着带行李或孩子的人。\n\n",
    "山顶上并不是博物馆，而是一个仍然用手工制造和修理东西的地方。",
    "一位造船师傅向客人解释，刚砍下的橡木经过蒸汽之后怎样弯曲。",
    "他的女儿负责记账、回复国外来信，并决定他们能够接受哪些订单。",
    "他们从来没有做过广告，可是自从大桥计划取消以后，顾客名单一直在增加。",
    "如果问起将来，他们只是笑一笑：树会生长，海面会上升，船总会浮在水上。",
    "傍晚风向改变，焦油和面包的味道慢慢飘向水边，灯光也一盏盏亮起来。",
)
PROMPTS = {
    "words": "Write a story.",
    "prose": "Please describe a day trip to the island, its people, and how to get there by ferry.",
    "json": "Give me the warehouse records as JSON.",
    "chinese": "请描述一次去小岛的旅行，介绍那里的人，以及怎样坐渡船前往。",
}
"""A user's message for each kind of answer."""


def words(seed: int, count: int) -> list[str]:
    """Return tokens of words that no language has, each a blank and a few letters with a number."""
    rng = random.Random(seed)
    return rng.choices(_made_up(rng), k=count)


def prose(seed: int, count: int) -> list[str]:
    """Return tokens of English sentences: the first four always, then in an order of their own."""
    return _told(_PROSE, seed, count)


def chinese(seed: int, count: int) -> list[str]:
    """Return tokens of Chinese sentences: the first four always, then in an order of their own."""
    return _told(_CHINESE, seed, count)


def json_records(seed: int, count: int) -> list[str]:
    """Return tokens of a JSON array of flat records, alike in part for two seeds; `count` is 80 at least."""
    rng = random.Random(seed)
    pieces = ["["]
    row = 0
    while len(pieces) < count - 75:
        note = re.split("[,;.]", rng.choice(_PROSE))[0][:40].strip()
        stock = rng.choice(["true", "false"])
        price = f"{rng.randint(1, 99)}.{rng.randint(10, 99)}"
        name = ("bolt", "hinge", "bracket", "washer", "handle", "spring", "gasket", "valve")[row % 8]
        record = f'{{"id": {row}, "name": "{name} {row}", "price": {price}, "in_stock": {stock}'
        pieces += _PIECE.findall(f'{record}, "note": "{note}"}}, ')
        row += 1
    head, tail = _PIECE.findall('{"codes": ['), ["]", "}", "]"]
    room = count - len(pieces) - len(head) - len(tail)
    codes = [str(rng.randint(100, 999)) for _ in range((room + 1) // 2)]
    if room % 2 == 0:
        codes[-1] += "0"  # four digits are two tokens
    return [*pieces, *head, *_PIECE.findall(",".join(codes)), *tail]


def _told(sentences: tuple[str, ...], seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    pieces: list[str] = []
    told = [*sentences[:4], *rng.sample(sentences[4:], len(sentences) - 4)]
    while len(pieces) < count:
        pieces += _PIECE.findall("".join(told))
        told = rng.sample(sentences, len(sentences))
    return pieces[:count]


def _made_up(rng: random.Random) -> list[str]:
    return [
        " " + "".join(rng.choices(string.ascii_lowercase, k=rng.randint(1, 6))) + f"{n:x}"
        for n in range(4000)
    ]


def entries(seed: int, pieces: list[str], *, has_ids: bool) -> list[dict[str, Any]]:
    """Return entries of the chat shape for the chosen `pieces`, each likely, as a sure model gives."""
    rng = random.Random(seed)
    others = _made_up(rng)
    numbers: dict[str, int] = {}
    result = []
    for piece in pieces:
        own = numbers.setdefault(piece, 4000 + len(numbers))
        drawn = [n for n in rng.sample(range(4000), ALTERNATIVES) if others[n] != piece]
        named = [(own, piece), *((n, others[n]) for n in drawn[: ALTERNATIVES - 1])]
        tail = sorted((-3.0 - rng.expovariate(0.25) for _ in named[1:]), reverse=True)
        top = [
            {
                **({"id": n} if has_ids else {}),
                "token": text,
                "bytes": list(text.encode()),
                "logprob": p,
            }
            for (n, text), p in zip(named, [-0.3, *tail], strict=True)
        ]
        result.append({**top[0], "top_logprobs": top})
    return result
