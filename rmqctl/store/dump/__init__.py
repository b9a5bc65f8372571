"""Decoding the files of a store for people: every byte has a line, damage too."""
