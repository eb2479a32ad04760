"""Appearance of the pages as the operator has set it: title, logo and colours.

They become files of the web folder, a stylesheet and an image, and elements of each page's head: no
inline script or style, which the Content-Security-Policy forbids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

THEME = "appearance/theme.css"
_TITLE = re.compile(r"<title>[^<]*</title>")
_ICON = re.compile(r'(<link rel="icon" href=")[^"]*(">)')


@dataclass(frozen=True)
class Appearance:
    """`logo` is an image by the suffix of its file, such as `.svg`; `properties` are CSS values.

    `properties` are custom properties by name, such as `--felt`, that replace those of base.css.
    """

    title: str | None = None
    logo: tuple[str, bytes] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        """The additional files of the web folder, by path."""
        files: dict[str, bytes] = {}
        if self.properties:
            lines = "".join(f"  {name}: {value};\n" for name, value in self.properties.items())
            files[THEME] = f":root {{\n{lines}}}\n".encode()
        if self.logo is not None:
            files[self._logo_path(self.logo[0])] = self.logo[1]
        return files

    def apply(self, page: str, *, folder: str) -> str:
        """An HTML page with this appearance; `folder` is the address of the web folder."""
        head = ""
        if self.title is not None or self.logo is not None:
            head += f'<link rel="stylesheet" href="{folder}brand.css">\n'
        if self.properties:
            head += f'<link rel="stylesheet" href="{folder}{THEME}">\n'
        if self.title is not None:
            title = escape(self.title)
            page = _TITLE.sub(lambda _: f"<title>{title}</title>", page)
            head += f'<meta name="application-name" content="{title}">\n'
        if self.logo is not None:
            logo = folder + self._logo_path(self.logo[0])
            page = _ICON.sub(lambda found: f"{found[1]}{logo}{found[2]}", page)
            head += f'<meta name="dealer-logo" content="{logo}">\n'
        return page.replace("</head>", f"{head}</head>", 1)

    @staticmethod
    def _logo_path(suffix: str) -> str:
        return f"appearance/logo{suffix}"
