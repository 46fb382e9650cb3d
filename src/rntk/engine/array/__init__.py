"""The array engine: the recursion in functions of the array API standard, on whatever device the sequences lie.

In go a `Network` and arrays of one library on one device; out come Gram matrices of the same library on the same
device. libraries (whose arrays are these, and where) → batch (checks, padding) → sides (unit vectors of each sequence)
→ recursion (pairs, with the array forms of activations) → blocks (blocks of pairs, assembled).

It computes what the fused engine computes, in the same unit-vector form (theory.md, section 7), but as a sequence of
whole-array operations: one block of pairs, one step of time, one operation after another. A graphics processor runs
each of them on thousands of lanes; on a CPU the fused engine, which keeps a pair in registers, is many times faster.
No data leaves the device. What comes back to the host is a handful of yes-or-no answers: are the inputs finite, did a
variance overflow.

The tests run it on NumPy, PyTorch, JAX and array-api-strict, which has devices that nothing else can read. No graphics
processor was at hand to try it on.
"""

from .batch import ArrayBatch, read_arrays
from .blocks import ArrayEngine
from .libraries import foreign_arrays, is_elsewhere, place_of, to_host

__all__ = ["ArrayBatch", "ArrayEngine", "foreign_arrays", "is_elsewhere", "place_of", "read_arrays", "to_host"]
