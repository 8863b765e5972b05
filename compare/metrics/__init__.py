"""One small module per metric; `spec` says what each number means and when there is none."""
