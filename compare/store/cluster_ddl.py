"""The shipped statements, rewritten for a ClickHouse cluster (`[store] cluster`).

Each table `x` becomes two: `x_local`, a Replicated*MergeTree on every host, and `x`, a Distributed
table over it, under the name that views, inserts and analysts use. docs/design/0004-cluster.md
argues the choices. Only the forms that the shipped files have are rewritten; any other statement
is refused, so that nothing reaches a cluster half rewritten.
"""

from __future__ import annotations

import re

from compare.store.sql_text import lexemes
from ingest.errors import FatalError

SHARD_BY_PARTITION = "cityHash64(topic_id, `partition`)"
SHARD_BY_EXPERIMENT = "cityHash64(experiment)"
SHARD_BY_SET = "cityHash64(set_name)"

_PATH = "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'"
_PATH_EVERYWHERE = "'/clickhouse/tables/all/{database}/{table}', '{shard}-{replica}'"

_CREATE_TABLE = re.compile(
    r"CREATE TABLE IF NOT EXISTS (?P<name>\w+)\s*(?P<columns>\(.*\))\s*"
    r"ENGINE = (?P<family>\w*)MergeTree(?:\((?P<arguments>[\w, ]+)\))?\s+(?P<rest>.*)",
    re.DOTALL,
)
_ORDER_BY = re.compile(r"\bORDER BY \(?(?P<key>[^()]*)\)?\s*(?=\b(?:TTL|SETTINGS|PRIMARY|SAMPLE)\b|$)")
_CREATE_VIEW = re.compile(r"CREATE OR REPLACE VIEW (?P<name>\w+)\s+(?P<rest>AS\s.*)", re.DOTALL)
_ALTER_TABLE = re.compile(r"ALTER TABLE (?P<name>\w+)\s+(?P<commands>.*)", re.DOTALL)
_COLUMN_COMMAND = re.compile(r"(?:ADD|DROP|RENAME|MODIFY|COMMENT) COLUMN\b")
_DROP = re.compile(r"DROP (?P<kind>TABLE|VIEW) IF EXISTS (?P<name>\w+)")
_JOIN_WORDS = frozenset(
    {"INNER", "LEFT", "RIGHT", "FULL", "CROSS", "OUTER", "ANY", "ALL", "ASOF", "SEMI", "ANTI"}
)


def local_table(table: str, cluster: str | None) -> str:
    """The table that holds the rows of `table` on each host."""
    return table if cluster is None else f"{table}_local"


def on_cluster(cluster: str | None) -> str:
    """` ON CLUSTER 'name'`, to stand behind the object's name; empty for a single server."""
    return "" if cluster is None else f" ON CLUSTER '{cluster}'"


def system_table(name: str, cluster: str | None) -> str:
    """`system.<name>`, of every host of the cluster."""
    return f"system.{name}" if cluster is None else f"clusterAllReplicas('{cluster}', system.{name})"


def for_cluster(statement: str, cluster: str, database: str) -> list[str]:
    """The statements that do on a cluster what `statement` does on a single server, in order.

    Raises FatalError for a statement that is not of a form that the shipped files use.
    """
    text = "".join(text for kind, text in lexemes(statement) if kind != "comment").strip()
    if found := _CREATE_TABLE.fullmatch(text):
        return _create_table(found, cluster, database)
    if found := _CREATE_VIEW.fullmatch(text):
        return [f"CREATE OR REPLACE VIEW {found['name']}{on_cluster(cluster)} {_global(found['rest'])}"]
    if found := _ALTER_TABLE.fullmatch(text):
        return _alter_table(found, cluster)
    if found := _DROP.fullmatch(text):
        names = [found["name"]]
        if found["kind"] == "TABLE":
            names.append(local_table(found["name"], cluster))
        return [f"DROP {found['kind']} IF EXISTS {name}{on_cluster(cluster)} SYNC" for name in names]
    raise FatalError(f"store.cluster: a statement has no form for a cluster: {' '.join(text.split())[:100]}")


def one_copy_everywhere(statement: str, cluster: str) -> str:
    """A CREATE TABLE whose whole content is on every host: all hosts are replicas of one table."""
    found = _CREATE_TABLE.fullmatch(statement.strip())
    if found is None:
        raise FatalError(f"store.cluster: not a CREATE TABLE: {' '.join(statement.split())[:100]}")
    return _replicated(found, found["name"], cluster, _PATH_EVERYWHERE)


def is_one_copy_everywhere(engine: str) -> bool:
    """Whether a live table's engine is the one that `one_copy_everywhere` gives."""
    return "/clickhouse/tables/all/" in engine


def _create_table(found: re.Match[str], cluster: str, database: str) -> list[str]:
    name = found["name"]
    local = local_table(name, cluster)
    return [
        _replicated(found, local, cluster, _PATH),
        f"CREATE TABLE IF NOT EXISTS {name}{on_cluster(cluster)} AS {local}\n"
        f"ENGINE = Distributed('{cluster}', '{database}', '{local}', {_sharding_key(found)})",
    ]


def _replicated(found: re.Match[str], name: str, cluster: str, path: str) -> str:
    arguments = f"{path}, {found['arguments']}" if found["arguments"] else path
    # A replicated table has its own window, and forgets tokens by age as well: a week, as long as Kafka
    # keeps records by default. On a single server age plays no part.
    rest = re.sub(
        r"\bnon_replicated_deduplication_window = (\d+)",
        r"replicated_deduplication_window = \1, replicated_deduplication_window_seconds = 604800",
        found["rest"],
    )
    return (
        f"CREATE TABLE IF NOT EXISTS {name}{on_cluster(cluster)}\n{found['columns']}\n"
        f"ENGINE = Replicated{found['family']}MergeTree({arguments})\n{rest}"
    )


def _sharding_key(found: re.Match[str]) -> str:
    """A function of the sorting key alone, so that all versions of a key land on one shard."""
    order = _ORDER_BY.search(found["rest"])
    key = {column.strip().strip("`") for column in order["key"].split(",")} if order else set()
    if {"topic_id", "partition"} <= key:
        return SHARD_BY_PARTITION
    if "experiment" in key:
        return SHARD_BY_EXPERIMENT
    if "set_name" in key:
        return SHARD_BY_SET
    raise FatalError(
        f"store.cluster: table {found['name']} cannot be sharded: its ORDER BY has neither "
        "topic_id and partition nor experiment nor set_name"
    )


def _alter_table(found: re.Match[str], cluster: str) -> list[str]:
    """The local table takes every command; the Distributed one has columns, and nothing else to alter."""
    commands = _split(found["commands"])
    where = on_cluster(cluster)
    statements = [
        f"ALTER TABLE {local_table(found['name'], cluster)}{where}\n    " + ",\n    ".join(commands)
    ]
    columns = [command for command in commands if _COLUMN_COMMAND.match(command)]
    if columns:
        statements.append(f"ALTER TABLE {found['name']}{where}\n    " + ",\n    ".join(columns))
    # At no moment may the Distributed table have a column that the tables under it lack.
    if any(command.startswith(("DROP COLUMN", "RENAME COLUMN")) for command in columns):
        statements.reverse()
    return statements


def _split(commands: str) -> list[str]:
    """An ALTER's commands, split at the commas outside brackets and strings."""
    parts = [""]
    depth = 0
    for kind, text in lexemes(commands):
        depth += (text == "(") - (text == ")") if kind == "other" else 0
        if kind == "other" and text == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += text
    return [part.strip() for part in parts]


def _global(select: str) -> str:
    """The same SELECT with GLOBAL before each JOIN and each IN with a subquery.

    Without it a shard would look for the other side among its own rows, or refuse to. ARRAY JOIN
    joins nothing but a row's own arrays.
    """
    parts = [text for _, text in lexemes(select)]
    meant = [at for at, (kind, _) in enumerate(lexemes(select)) if kind != "space"]
    words = [parts[at].upper() for at in meant]
    for position, word in enumerate(words):
        first = position
        if word == "IN" and words[position + 1 : position + 2] == ["("]:
            if words[position + 2] not in ("SELECT", "WITH"):
                continue
            first -= words[position - 1] == "NOT"
        elif word == "JOIN":
            while words[first - 1] in _JOIN_WORDS:
                first -= 1
            if words[first - 1] == "ARRAY":
                continue
        else:
            continue
        if words[first - 1] != "GLOBAL":
            parts[meant[first]] = f"GLOBAL {parts[meant[first]]}"
    return "".join(parts)
