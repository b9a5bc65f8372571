"""``doctor --bundle``: an archive for a report of a fault, without what messages and names say."""
