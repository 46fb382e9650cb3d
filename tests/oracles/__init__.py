"""Independent answers the tests compare the library against; nothing here imports ``rntk``.

An oracle gets its numbers from another route than the code under test, so that a shared mistake is unlikely:

``duals``            Gaussian expectations of an activation: closed forms, lattice sums where there is none.
``high_precision``   the recursion of THEORY section 3 in textbook order, in 120-digit arithmetic.
``partials``         the same expectations with their derivatives by variances and covariance, in closed form.
``lattice``          the same for tanh and sigmoid, by exponentially convergent sums.
``battery``          pairs of sequences that try a kernel where it is hard, and their stored kernels and derivatives.
``finite_network``   random networks of finite width, differentiated by hand, averaged over draws.
``*_values.json``    stored numbers (of ``duals``, of ``battery``, and of the neural-tangents library), each beside
                     the script ``make_*_values.py`` that wrote it.

In: float64 sequences and deviations, taken as exact numbers. Out: mpmath numbers, or NumPy arrays with their
standard errors. The oracles are written to be read and trusted, not to be fast.
"""
