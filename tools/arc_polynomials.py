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


def main() -> None:
    half_log, quarter = mp.log(2) / 2, mp.mpf(1) / 4
    table = {
        "A64": (a, mp.mpf(1), 2e-16, "A(u) on [0, 1], theory.md (25)"),
        "B64": (b, mp.mpf(1), 4e-16, "B(u) on [0, 1], theory.md (25)"),
        "A32": (a, mp.mpf(1), 8e-8, "A(u) for single precision"),
        "B32": (b, mp.mpf(1), 8e-8, "B(u) for single precision"),
        "ARCSIN64": (arcsin_excess, quarter, 1e-16, "(arcsin(r)/r - 1)/r² in r² on [0, 1/4]"),
        "EXP64": (growth, half_log, 3e-17, "(exp(x) - 1)/x on [-log(2)/2, log(2)/2]", -half_log),
    }
    print('"""Polynomial coefficients, lowest power first. Written by tools/arc_polynomials.py; do not edit."""\n')
    print("# fmt: off")
    for name, (f, end, tolerance, meaning, *begin) in table.items():
        print(f"#: {meaning}; error below {tolerance:g}.")
        print(f"{name} = (")
        for c in fit(f, end, tolerance, *begin):
            print(f"    {mp.nstr(c, 20)},")
        print(")")


if __name__ == "__main__":
    main()
