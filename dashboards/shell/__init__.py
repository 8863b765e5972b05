"""What every page stands in: the store it reads, address bar, words, time zone, states."""
