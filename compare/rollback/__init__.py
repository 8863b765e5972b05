"""Whether a candidate should be rolled back, who was told, who approved it, and to what."""
