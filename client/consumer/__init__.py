"""What all kinds of consumers have in common: settings, subscriptions, pull results."""
