"""What wide random recurrences become: state evolution, Appendix C of the paper on linear recurrent networks.

In goes a recursion q_{t+1} = Σ_i A_i G_i(q_t, u_t)/√n with Gaussian matrices A_i that stay the same at every step: the
functions G_i, the variances ν_i, the law of q_0 and of the inputs. Out come the covariances of the Gaussian process
(Q_0, …, Q_{T-1}) that one row of (q_0, …, q_{T-1}) is for n → ∞, with an error for each. The kernels of this library
are special cases with closed forms. Here G is any function of a row, and its expectations are computed by numbers.

Imports run one way: `recursion` (the problem, checked once) and `gaussian` (covariances of any rank) <- `quadrature`,
`monte_carlo` (two ways to the limit) <- `states` (chooses, for the caller).
"""

from .states import StateEvolution, state_evolution

__all__ = ["StateEvolution", "state_evolution"]
