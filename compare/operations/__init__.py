"""What the service tells of itself: metrics, health, logs and traces."""
