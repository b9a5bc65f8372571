"""``rmqctl store dump``: decodes the files of a store."""
