"""``rmqctl offset reset``, ``undo``, ``import``, ``delete``, ``orphans``: moving groups."""
