"""Files of policies opened, and sealed again whatever is in them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from vulcan.runtime.files import HEADER


def seal(content: Any, version: int = 1) -> bytes:
    packed = content if isinstance(content, bytes) else msgspec.msgpack.encode(content)
    data = HEADER.pack(b"VULCAN\x1a\n", version, len(packed)) + packed
    return data + hashlib.sha256(data).digest()


def unseal(path: Path) -> Any:
    return msgspec.msgpack.decode(path.read_bytes()[HEADER.size : -32])
