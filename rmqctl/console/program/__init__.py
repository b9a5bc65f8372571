"""The program around screens and plans: the command, Textual's app, what keys do."""
