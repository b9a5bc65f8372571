"""``rmqctl dlq redrive``: sending dead letters again."""
