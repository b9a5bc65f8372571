"""``rmqctl store dump``: the files of a store decoded, byte for byte."""
