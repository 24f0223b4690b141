"""Arrays as text that a browser unpacks: bytes in planes, compressed, in base64.

A packed plan is a JSON header, which says where each array lies, and then the arrays. Numbers of
several bytes are stored plane by plane, all lowest bytes first and all highest bytes last: the high
bytes of neighbours are alike, which makes what is compressed about a third smaller. Reals have
single precision; what must be exact is in the header of the page. Texts are one string of bytes
with the end of each, so that a browser decodes those only that it shows.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.pages.arrays import PlanArrays

__all__ = ["pack_arrays"]

REALS: Final = ("reach", "fails", "risk", "reward", "chance", "pay")
WHOLES: Final = ("depth", "action", "state", "arrival", "first", "label", "child")
STEADY: Final = ("arrival", "first", "child")
"""Arrays that grow by little from one entry to the next: these steps are stored."""


def pack_arrays(places: PlanArrays) -> str:
    """Return all arrays of a plan as text."""
    texts = [text.encode() for text in places.texts]
    arrays: dict[str, NDArray[Any]] = {
        **{name: getattr(places, name).astype("<f4") for name in REALS},
        **{name: getattr(places, name).astype("<i4") for name in WHOLES},
        "ends": np.cumsum([len(text) for text in texts], dtype="<i4"),
        "letters": np.frombuffer(b"".join(texts), "u1"),
    }
    for name in STEADY:
        arrays[name] = np.diff(arrays[name], prepend=np.zeros(1, "<i4")).astype("<i4")
    if places.position is not None:
        arrays["x"], arrays["y"] = places.position.T.astype("<f4")
    sections: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name, array in arrays.items():
        kind = {"f": "real", "i": "whole", "u": "byte"}[array.dtype.kind]
        steps = name in STEADY
        sections.append({"name": name, "kind": kind, "count": len(array), "steps": steps})
        width = array.dtype.itemsize
        planes = np.ascontiguousarray(array).view("u1").reshape(len(array), width).T
        parts.append(planes.tobytes())
    header = json.dumps(sections).encode()
    content = len(header).to_bytes(4, "little") + header + b"".join(parts)
    return base64.b64encode(zlib.compress(content, 9)).decode()
