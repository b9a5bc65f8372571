"""``rmqctl store repair``: mending a damaged store by a plan."""
