"""``rmqctl retry``: messages that a group is to consume again."""
