"""Following stores: positions, what a batch takes, progress as that of a group."""
