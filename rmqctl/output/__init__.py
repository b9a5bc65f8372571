"""All output to stdout: commands pass typed rows.

A row is a NamedTuple. Its fields are the columns in the order of printing, and the JSON keys.
``Annotated`` has the meaning of a field and whether only ``wide`` and the JSON formats show it.
Units follow from the name: ``_timestamp`` is epoch milliseconds, ``_ms`` a duration, ``_bytes`` and
``_size`` bytes. None is unknown, never 0.
"""
