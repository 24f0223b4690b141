"""Bridges to other tools, each a module that is imported by its name; nothing else needs them."""
