"""The commands, one module a noun; :mod:`rmqctl.tree` says which function is which."""
