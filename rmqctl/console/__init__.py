"""``rmqctl console``: a store on one full screen.

Folders and modules, from the bottom up; only ``driver`` and ``program`` import Textual:

    looks/      what a pane asks of a store: rows of a command, and that command. No terminal.
    reading     the thread that asks, and the open store
    faults      errors that the console outlives, and their tracebacks
    tables      rows as cells: filter, order, columns, widths
    drawing     lines of text with roles, such as a state or a heading
    panes       a look with a cursor; details, parts and charts are other forms
    themes      colors of the roles
    keys        the table of keys
    terminal    what the terminal must be; driver, guard: its state meanwhile and afterwards
    screens/    the panes of each screen
    plans/      changes: the plan, the typed name, what was done
    program/    the command, Textual, what keys and typed words do
"""
