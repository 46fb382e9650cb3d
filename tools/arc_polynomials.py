"""Prints src/rntk/activations/arc_coefficients.py: polynomials behind arccos, arcsin and exp, made in 60 digits.

    python tools/arc_polynomials.py > src/rntk/activations/arc_coefficients.py

Each analytic function is interpolated at Chebyshev nodes of its interval; the smallest degree is taken whose
error on a fine grid is below the tolerance. Needs mpmath.
"""

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 60


def angle_over_root(u: mp.mpf) -> mp.mpf:
    """g(u) = arccos(1 - u) / sqrt(u)."""
    return mp.sqrt(2) if u == 0 else 2 * mp.asin(mp.sqrt(u / 2)) / mp.sqrt(u)


def b(u: mp.mpf) -> mp.mpf:
    return angle_over_root(u) / mp.pi


def a(u: mp.mpf) -> mp.mpf:
    return (mp.sqrt(2 - u) - (1 - u) * angle_over_root(u)) / (mp.pi * u)


def arcsin_over_argument(z: mp.mpf) -> mp.mpf:
    """arcsin(r) / r as a function of z = r²."""
    return mp.asin(mp.sqrt(z)) / mp.sqrt(z)


def arcsin_excess(z: mp.mpf) -> mp.mpf:
    """(arcsin(r)/r - 1) / r² as a function of z = r²."""
    return (arcsin_over_argument(z) - 1) / z


def growth(x: mp.mpf) -> mp.mpf:
    """(e^x - 1) / x."""
    return mp.expm1(x) / x if x else mp.mpf(1)


def fit(f: Callable[[mp.mpf], mp.mpf], end: mp.mpf, tolerance: float, begin: mp.mpf = 0) -> list[mp.mpf]:
    for degree in range(3, 30):
        n = degree + 1
        nodes = [begin + (end - begin) * (1 + mp.cos(mp.pi * (2 * i + 1) / (2 * n))) / 2 for i in range(n)]
        vandermonde = mp.matrix(n, n)
        for i, node in enumerate(nodes):
            for k in range(n):
                vandermonde[i, k] = node**k
        c = list(mp.lu_solve(vandermonde, mp.matrix([f(x) for x in nodes])))
        grid = [begin + (end - begin) * (mp.mpf(i) + mp.mpf("0.3")) / 400 for i in range(400)]
        if max(abs(mp.polyval(c[::-1], x) - f(x)) for x in grid) < tolerance:
            return c
    raise ArithmeticError("no degree below 30 reaches the tolerance")


def fit_both(powers: int, poles: int, tolerance: float) -> list[list[mp.mpf]]:
    """A and B as P/Q and R/Q with one Q: interpolated at Chebyshev nodes, more of A or of B, whichever does best.

    Both have their one singularity at u = 2: a few common poles beyond it replace half of the powers. In powers of
    1 - u all coefficients are positive, so that nothing cancels.
    """
    n, best, found = powers + 1, mp.inf, []
    grid = [(mp.mpf(i) + mp.mpf("0.3")) / 400 for i in range(400)]
    for count in range(n, n + poles + 1):
        rows, values = [], []
        for f, first, number in ((a, 0, count), (b, n, 2 * n + poles - count)):
            for i in range(number):
                x = (1 + mp.cos(mp.pi * (2 * i + 1) / (2 * number))) / 2
                y = f(1 - x)
                row = [mp.mpf(0)] * (2 * n) + [-y * x**k for k in range(1, poles + 1)]
                row[first : first + n] = [x**k for k in range(n)]
                rows.append(row)
                values.append(y)
        c = list(mp.lu_solve(mp.matrix(rows), mp.matrix(values)))
        P, R, Q = c[:n], c[n : 2 * n], [mp.mpf(1), *c[2 * n :]]
        error = max(
            abs(mp.polyval(part[::-1], x) / mp.polyval(Q[::-1], x) - f(1 - x))
            for part, f in ((P, a), (R, b))
            for x in grid
        )
        if error < best:
            best, found = error, [P, R, Q]
    if best > tolerance:
        raise ArithmeticError(f"{powers} powers and {poles} poles leave {mp.nstr(best, 3)}")
    return found


def main() -> None:
    half_log, quarter = mp.log(2) / 2, mp.mpf(1) / 4
    table = {
        "ARCSIN64": (arcsin_excess, quarter, 1e-16, "(arcsin(r)/r - 1)/r² in r² on [0, 1/4]"),
        "EXP64": (growth, half_log, 3e-17, "(exp(x) - 1)/x on [-log(2)/2, log(2)/2]", -half_log),
    }
    print('"""Polynomial coefficients, lowest power first. Written by tools/arc_polynomials.py; do not edit."""\n')
    print("# fmt: off")
    for name, powers, poles, tolerance in (("ARC64", 7, 6, 5e-17), ("ARC32", 3, 2, 6e-8)):
        print("#: A(u) = P/Q and B(u) = R/Q on [0, 1], theory.md (25): P, R and Q, in powers of 1 - u;")
        print(f"#: error below {tolerance:g}.")
        print(f"{name} = (")
        for part in fit_both(powers, poles, tolerance):
            print("    (")
            for c in part:
                print(f"        {mp.nstr(c, 20)},")
            print("    ),")
        print(")")
    for name, (f, end, tolerance, meaning, *begin) in table.items():
        print(f"#: {meaning}; error below {tolerance:g}.")
        print(f"{name} = (")
        for c in fit(f, end, tolerance, *begin):
            print(f"    {mp.nstr(c, 20)},")
        print(")")


if __name__ == "__main__":
    main()
