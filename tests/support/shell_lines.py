"""The calls of our program that a line for a shell makes."""

import re
import shlex


def calls_in(line: str) -> list[list[str]]:
    """The words after each ``rmqctl`` of a line, without redirections and substitutions."""
    found = []
    line = re.sub(r"\s\d>(?:&\d|\s*\S+)", "", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.commenters = ""
    lexer.whitespace_split = True
    words: list[str] | None = None
    skip = False
    for token in lexer:
        if token and set(token) <= set("|&;()"):
            words = None
        elif token and set(token) <= set("<>"):
            skip = True  # a file's name follows, or a substitution
        elif skip:
            skip = False
            if token == "rmqctl":
                words = []
                found.append(words)
        elif words is not None:
            words.append(token)
        elif token == "rmqctl":
            words = []
            found.append(words)
    return found
