"""Scripts without their comments: what a browser is sent of them, a fifth less.

The text is cut into tokens, and each comment is replaced by the line ends in it, so that every
token stays in its line, and a browser's complaint names the line that the file has. Where a slash
could begin a regular expression as well as divide, the script is refused: it is not guessed at.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<word>\#?[\w$]+)
    | (?P<sign>\+\+|--|=>|\?\.|[^\s\w"'])
    """,
    re.VERBOSE | re.DOTALL,
)
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(?P<end>`|\$\{)", re.DOTALL)
_EXPRESSION = re.compile(r"/(?!\*)(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+/\w*")

_HASHBANG = re.compile(r"\A#![^\n]*")
_CONDITIONS = {"if", "while", "for", "with"}
"""Words whose parentheses are followed by a statement."""
_BEFORE_VALUE = re.compile(
    r"await|break|case|continue|debugger|default|delete|do|else|extends|in|instanceof|new|return"
    r"|throw|typeof|void"
)
_DOTS = {".", "?."}
_NAME = re.compile(r"#?[\w$]+")
_EITHER = {"}", "++", "--", "of", "yield"}
"""What may end a value as well as come before one."""


def without_comments(script: str) -> str:
    """The same script without its comments.

    Raises ValueError where it cannot be told what a slash means, or where something has no end.
    """
    return "".join(_Cutter(script).pieces())


class _Cutter:
    def __init__(self, script: str) -> None:
        self._script = script
        self._at = 0
        self._before = ["", ""]  # the last two tokens that are neither space nor comment
        self._open: list[str] = []  # brackets and `${`; behind `if` and its like, "if("

    def pieces(self) -> list[str]:
        pieces = [self._take(found)] if (found := _HASHBANG.match(self._script)) else []
        while self._at < len(self._script):
            pieces.append(self._piece())
        if self._open:
            raise self._refusal("something is open at the end")
        return pieces

    def _piece(self) -> str:
        found = _TOKEN.match(self._script, self._at)
        if found is None:
            raise self._refusal("a string has no end")
        kind, text = found.lastgroup, found[0]
        if kind == "space":
            return self._take(found)
        if kind == "comment":
            self._take(found)
            lines = text.count("\n")
            return "\n" * lines if lines or text.startswith("//") else " "
        if text == "/":
            return self._slash(found)
        if text == "`" or (text == "}" and self._open[-1:] == ["${"]):
            return self._template(found)
        self._note(self._bracket(text) if kind == "sign" else text)
        return self._take(found)

    def _slash(self, found: re.Match[str]) -> str:
        earlier, before = self._before
        named = earlier in _DOTS  # a member may be called as a keyword is
        if before in _EITHER and not named:
            raise self._refusal(f"a slash behind {before!r} can mean two things")
        name = _NAME.fullmatch(before) and (named or not _BEFORE_VALUE.fullmatch(before))
        value = name or before[-1:] in (")", "]", '"', "'", "`")
        if value and not self._script.startswith("/*", self._at):
            self._note("/")
            return self._take(found)
        expression = _EXPRESSION.match(self._script, self._at)
        if expression is None:
            raise self._refusal("what a slash begins has no end")
        self._note("`")  # a value, as a template is
        return self._take(expression)

    def _template(self, found: re.Match[str]) -> str:
        """From a template's beginning, or from the end of a value in it, to the next or its own."""
        if found[0] == "}":
            self._open.pop()
        text = _TEMPLATE.match(self._script, found.end())
        if text is None:
            raise self._refusal("a template has no end")
        if text["end"] == "${":
            self._open.append("${")
        self._note(text["end"])
        return self._take(found) + self._take(text)

    def _bracket(self, text: str) -> str:
        """Keep count of brackets; what a sign is like for a slash behind it."""
        if text in "([{":
            earlier, before = self._before
            condition = text == "(" and before in _CONDITIONS and earlier not in _DOTS
            self._open.append("if(" if condition else text)
        elif text in ")]}":
            if not self._open:
                raise self._refusal(f"{text!r} closes nothing")
            return "}" if self._open.pop() == "if(" else text
        return text

    def _note(self, text: str) -> None:
        self._before = [self._before[1], text]

    def _take(self, found: re.Match[str]) -> str:
        self._at = found.end()
        return found[0]

    def _refusal(self, why: str) -> ValueError:
        line = self._script.count("\n", 0, self._at) + 1
        return ValueError(f"Line {line} of a script cannot be read: {why}.")
