"""Golden sets: requests with an expected answer, run against an endpoint again and again."""
