"""The small languages of the command line: positions, templates, paths in JSON; see storage.parse.

All functions are pure: text and the clock are arguments. Malformed text raises ValueError with half
a sentence that names the text and gives valid examples.
"""
