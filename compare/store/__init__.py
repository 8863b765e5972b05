"""The store: ClickHouse or the embedded engine, reached the same way."""

from compare.store.answer import Result
from compare.store.client import Role, Store, open_store
from compare.store.errors import StoreQueryError

__all__ = ["Result", "Role", "Store", "StoreQueryError", "open_store"]
