"""What was found since somebody looked last."""
from __future__ import annotations

import typing

from . import _library, _show

Finding = dict[str, typing.Any]


class News:
    """Hands out each finding once, and again where its bug has struck again."""

    def __init__(self) -> None:
        self._counts: dict[_show.Key, int] = {}

    def take(self) -> tuple[dict[str, typing.Any], list[Finding]]:
        """The report, after what waited was decided, and what was found or came again since the last call."""
        _library.decide()
        report = _library.report() or {"findings": []}
        found = []
        for finding in report["findings"]:
            key = _show.key(finding)
            if finding["count"] > self._counts.get(key, 0):
                found.append(finding)
            self._counts[key] = finding["count"]
        return report, found
