"""What the pages ask of the store, one module a page. Values are bound by the server."""
