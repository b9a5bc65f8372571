"""The small languages of the command line: times, durations, sizes, positions, templates.

All pure: text and the clock come in, values go out. Malformed text is a :class:`ValueError`
whose message is half a sentence that names the text and says what would be right.
"""
