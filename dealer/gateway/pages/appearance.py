"""Appearance of the pages as the operator has set it: title, logo and colours.

They become files of the web folder, a stylesheet and an image, and elements of each page's head: no
inline script or style, which the Content-Security-Policy forbids. A server with insecure test decks
says so on each page, in the reader's language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from importlib import resources

from dealer.languages.language import languages

THEME = "appearance/theme.css"
WARNING = "appearance/warning.css"
_TITLE = re.compile(r"<title>[^<]*</title>")
_SHARED_TITLE = re.compile('<meta property="og:title" content="')
_ICON = re.compile(r'(<link rel="icon" href=")[^"]*(">)')
_BODY = re.compile(r"<body[^>]*>")


@dataclass(frozen=True)
class Appearance:
    """`logo` is an image by the suffix of its file, such as `.svg`; `properties` are CSS values.

    `properties` are custom properties by name, such as `--felt`, that replace those of base.css.
    `insecure_test_decks` says that the server has them.
    """

    title: str | None = None
    logo: tuple[str, bytes] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    insecure_test_decks: bool = False

    def files(self) -> dict[str, bytes]:
        """The additional files of the web folder, by path."""
        files: dict[str, bytes] = {}
        if self.properties:
            lines = "".join(f"  {name}: {value};\n" for name, value in self.properties.items())
            files[THEME] = f":root {{\n{lines}}}\n".encode()
        if self.logo is not None:
            files[self._logo_path(self.logo[0])] = self.logo[1]
        if self.insecure_test_decks:
            files[WARNING] = self.warning_style.encode()
        return files

    @property
    def warning_style(self) -> str:
        """The rules for the warning: it shows the sentence in the language of the page."""
        if not self.insecure_test_decks:
            return ""
        style = (resources.files("dealer") / "web" / "warning.css").read_text("utf-8")
        shown = ",\n".join(f':root[lang="{tag}"] .warning [lang="{tag}"]' for tag in languages())
        return f"{style}\n{shown} {{\n  display: inline;\n}}\n"

    def warn(self, page: str) -> str:
        """An HTML page with the warning of a server with insecure test decks."""
        if not self.insecure_test_decks:
            return page
        sentences = "\n".join(
            f'<span lang="{tag}" dir="{language.direction}">'
            f"{escape(language.text('errorPages.insecureDecks'))}</span>"
            for tag, language in languages().items()
        )
        return _BODY.sub(
            lambda found: f'{found[0]}\n<p class="warning" role="alert">\n{sentences}\n</p>',
            page,
            count=1,
        )

    def apply(self, page: str, *, folder: str) -> str:
        """An HTML page with this appearance; `folder` is the address of the web folder."""
        head = ""
        if self.title is not None or self.logo is not None:
            head += f'<link rel="stylesheet" href="{folder}brand.css">\n'
        if self.properties:
            head += f'<link rel="stylesheet" href="{folder}{THEME}">\n'
        if self.insecure_test_decks:
            head += f'<link rel="stylesheet" href="{folder}{WARNING}">\n'
        if self.title is not None:
            title = escape(self.title)
            page = _TITLE.sub(lambda _: f"<title>{title}</title>", page)
            page = _SHARED_TITLE.sub(lambda found: f"{found[0]}{title} · ", page)
            head += f'<meta name="application-name" content="{title}">\n'
        if self.logo is not None:
            logo = folder + self._logo_path(self.logo[0])
            page = _ICON.sub(lambda found: f"{found[1]}{logo}{found[2]}", page)
            head += f'<meta name="dealer-logo" content="{logo}">\n'
        return self.warn(page.replace("</head>", f"{head}</head>", 1))

    @staticmethod
    def _logo_path(suffix: str) -> str:
        return f"appearance/logo{suffix}"
