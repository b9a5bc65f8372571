"""``rmqctl store repair``: repairs a damaged store by a plan."""
