"""The screens of the console: their panes, and where they lead.

``table`` has the names; a module here has the screens of one noun. A module is imported when one
of its screens is opened.
"""
