"""The papers: their experiments as commands, with verdicts, their data sets, baselines and printed numbers.

The room at the end of the path: it uses everything else, and nothing but the command `rntk reproduce` uses it.
"""
