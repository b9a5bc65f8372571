"""Texts of users that more than one package reads: times, durations, sizes, regular expressions.

All functions are pure: text and the clock are arguments. Malformed text raises ValueError with half
a sentence that names the text and gives valid examples.
"""
