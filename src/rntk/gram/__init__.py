"""Gram matrices from tiles: run a plan on all cores, watch it, put the blocks in place.

In goes a `Problem`, out come `Grams`. Tiles are independent, so the result doesn't depend on the number of threads or
on the order in which they finish.
"""

from .assemble import Grams, run_tiles

__all__ = ["Grams", "run_tiles"]
