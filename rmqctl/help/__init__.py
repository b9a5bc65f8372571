"""Help of the program: terms, example commands, manual pages, checks of the environment."""
