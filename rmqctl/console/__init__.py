"""``rmqctl console``: a store on one full screen.

Folders and modules, from the bottom up; only ``terminal`` and ``app`` import Textual:

    looks/      what a pane asks of a store: rows of a command, and that command. No terminal.
    reading     the thread that asks, and the open store
    tables      rows as cells: filter, order, columns, widths
    drawing     lines of text with roles, such as a state or a heading
    themes      colors of the roles
    keys        the table of keys
    screens     panes, their look and their place
    app         Textual: keys in, lines out
    terminal    what the terminal must be, and its state afterwards
    command     the command
"""
