"""Everything that is printed on stdout goes through here: commands hand over typed rows.

A row is a NamedTuple whose fields are the columns, in the order in which they are printed, with
the names of the JSON keys. ``Annotated`` says what a field means and whether only ``wide`` and
the JSON formats show it. Units follow from the name: ``_timestamp`` is epoch milliseconds,
``_ms`` a duration, ``_bytes`` and ``_size`` bytes. None is unknown, never 0.
"""
