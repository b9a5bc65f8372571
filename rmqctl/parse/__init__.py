"""The small languages of the command line: times, durations, sizes, positions, templates.

All functions are pure: text and the clock are arguments. Malformed text raises ValueError with half
a sentence that names the text and gives valid examples.
"""
