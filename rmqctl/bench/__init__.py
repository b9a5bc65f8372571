"""``rmqctl bench``: load at an even rate, and how long messages take."""
