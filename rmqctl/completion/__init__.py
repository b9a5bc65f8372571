"""What a shell may complete: the answers to its questions, and the values of options."""
