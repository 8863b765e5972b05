"""Asks the registry which pins are known to be vulnerable or were withdrawn. Run by `make check`.

By PyPI's JSON API: https://docs.pypi.org/api/json/ (`vulnerabilities` are OSV's, `yanked` is of PEP 592). A
mirror may have the page of a package but none of its releases: then the page of the package, which is of its
latest release, answers for a pin that is the latest. What was not answered is named; `--strict` fails for it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from check_pins import pins

REGISTRY = "https://pypi.org"
NO_ANSWER = (OSError, ValueError, http.client.HTTPException)
"""Out of reach, no JSON (a proxy's page of its own), or cut off."""
# Abandoned with two known holes: a registry that knows of none has no advisories, only empty lists.
KNOWN_BAD = ("pycrypto", "2.6.1")
# Advisories that do not touch what is used here, each with the reason.
ALLOWED: dict[str, str] = {}
AT_ONCE = 8
SECONDS = 30.0


class Answer(NamedTuple):
    """What the registry says of one pin: what is wrong, one line each; None if it did not answer."""

    name: str
    version: str
    wrong: list[str] | None


def page(registry: str, path: str) -> dict[str, Any] | None:
    """A page of the API; None where the registry has none. Raises one of NO_ANSWER."""
    try:
        with urllib.request.urlopen(f"{registry}/pypi/{path}/json", timeout=SECONDS) as reply:
            found: dict[str, Any] = json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 404:
                return None
            raise
    return found


def ask(registry: str, name: str, version: str) -> Answer:
    """What is known of a release. Raises one of NO_ANSWER."""
    found = page(registry, f"{name}/{version}") or page(registry, name)
    if found is None or found["info"]["version"] != version or "vulnerabilities" not in found:
        return Answer(name, version, None)
    wrong = []
    for one in found["vulnerabilities"]:
        names = [one["id"], *one["aliases"]]
        if not one.get("withdrawn") and ALLOWED.keys().isdisjoint(names):
            fixed = ", ".join(one["fixed_in"]) or "no release"
            wrong.append(f"{name} {version}: {' = '.join(names)}, fixed in {fixed}: {one['link']}")
    if found["info"]["yanked"]:
        wrong.append(f"{name} {version}: withdrawn: {found['info']['yanked_reason'] or 'no reason given'}")
    return Answer(name, version, wrong)


def ask_or_not(registry: str, name: str, version: str) -> Answer:
    """The same, without an answer where one page cannot be had."""
    try:
        return ask(registry, name, version)
    except NO_ANSWER:
        return Answer(name, version, None)


def main() -> None:
    """Exit code 1, with a line each, if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--registry", default=REGISTRY)
    parser.add_argument("--strict", action="store_true", help="fail where the registry does not answer")
    asked = parser.parse_args()
    try:
        known = ask(asked.registry, *KNOWN_BAD)
        nothing = "" if known.wrong else f"it has no advisories, not even of {' '.join(KNOWN_BAD)}"
    except NO_ANSWER as error:
        nothing = str(error) or type(error).__name__
    if nothing:
        print(f"audit: NOTHING IS KNOWN OF ANY PIN: {asked.registry}: {nothing}")
        sys.exit(int(asked.strict))
    with ThreadPoolExecutor(AT_ONCE) as workers:
        answers = list(workers.map(lambda pin: ask_or_not(asked.registry, *pin), pins().items()))
    good = sum(one.wrong == [] for one in answers)
    print(f"audit: {good} of {len(answers)} pins have no advisory and are not withdrawn")
    silent = [f"{one.name} {one.version}" for one in answers if one.wrong is None]
    if silent:
        print(f"audit: not answered for {len(silent)}: {', '.join(silent)}")
    wrong = [line for one in answers for line in one.wrong or []]
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong) or (asked.strict and bool(silent)))


if __name__ == "__main__":
    main()
