"""The charts, one module a page. Colours only from `shell.palette`."""
