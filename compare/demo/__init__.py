"""The demo: real models, a real broker, a real workload and the report."""
