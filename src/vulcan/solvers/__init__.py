"""Solvers: small frozen dataclasses of parameters that can search."""
