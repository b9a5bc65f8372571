"""What the first writer does when it can not trust the shared page."""
