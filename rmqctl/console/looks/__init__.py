"""What a pane of the console asks of a store: the rows of a command, without a terminal."""
