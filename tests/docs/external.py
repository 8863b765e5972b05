"""Lists each link to another host with its pages; nothing is fetched: `python -m tests.docs.external`."""

from __future__ import annotations

from collections import defaultdict

from tests.docs.pages import PAGES, links, name


def main() -> None:
    """Print them in order."""
    found: dict[str, set[str]] = defaultdict(set)
    for page in PAGES:
        for target in links(page):
            if target.startswith(("http://", "https://")):
                found[target].add(name(page))
    for target, pages in sorted(found.items()):
        print(f"{target}  ({', '.join(sorted(pages))})")


if __name__ == "__main__":
    main()
