"""`python -m tests.golden`: make the golden files anew."""

from __future__ import annotations

import json

from tests.golden import DOCUMENTS, FOLDER


def main() -> None:
    """Write every file, and say which ones have changed."""
    for name, make in DOCUMENTS.items():
        path = FOLDER / name
        text = json.dumps(make(), indent=1) + "\n"
        changed = not path.exists() or path.read_text(encoding="utf-8") != text
        path.write_text(text, encoding="utf-8")
        print(f"{name}: {'changed' if changed else 'as it was'}")


if __name__ == "__main__":
    main()
