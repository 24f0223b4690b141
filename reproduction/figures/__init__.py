"""Figures of the paper's experiments: curves over a parameter, convergence, and policy spaces.

They take plain numbers, and share the style of `vulcan.plotting`.
"""
