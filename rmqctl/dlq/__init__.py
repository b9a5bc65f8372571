"""Dead letters: looking at them, sending them again, marking them as handled."""
