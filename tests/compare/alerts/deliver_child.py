"""Sends what is due once, in a process of its own. Run: python -m ... STORE_FOLDER EXPERIMENT WEBHOOK_URL"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from compare.alerts.deliver import deliver_due
from compare.alerts.sinks import open_sinks
from compare.store.client import open_store
from ingest.settings import StoreSettings
from ingest.settings_notify import NotifySettings, WebhookSink

if __name__ == "__main__":
    url, experiment, hook = sys.argv[1:]
    with open_store(StoreSettings(url=url), role="any") as store:
        sinks = open_sinks(NotifySettings(webhook={"pager": WebhookSink(url=hook)}))
        deliver_due(store, sinks, experiment, datetime.now(UTC))
