"""What every command that changes something has in common: plan, question, result, journal."""
