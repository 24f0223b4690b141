"""Missions over histories, each with a twin whose states merge."""
