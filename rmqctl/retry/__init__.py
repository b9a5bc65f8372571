"""``rmqctl retry``: messages that a group will consume again."""
