"""The frame of the command line: tree, options, settings, errors, completion."""
