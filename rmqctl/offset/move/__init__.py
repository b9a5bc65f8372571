"""Moving the progress of groups: where to, what it would mean, doing it, taking it back."""
