"""Programs: tracing, the rules of appendix B.1 as an interpreter, backward programs, and kernels of exact cells."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from rntk import RNTK, load, save, sensitivity
from rntk.errors import ModelFileError
from rntk.learners import RNTKSVC, RNTKClassifier, RNTKRidgeClassifier
from rntk.programs import CELLS, Program, ProgramKernel, matrix, nonlinearity, trace, vector
from rntk.programs.backward import backward, check_fresh, exact_moments, source_moment, tangent_kernel
from rntk.programs.rules import At, Table
from rntk.sequences import as_batch

EXACT = ("elman", "leaky", "residual", "normalised", "multiplicative", "state_space", "dilated")


def some(lengths, channels=2, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((length, channels)) for length in lengths]


# -- tracing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CELLS)
def test_programs_are_plain_data(name):
    program = trace(CELLS[name], depth=2)
    again = Program.from_dict(json.loads(json.dumps(program.to_dict())))
    assert again == program
    assert str(again) == str(program)
    assert program != trace(CELLS[name])
    assert program.dot().startswith("digraph")
    assert program.rules().count("Σ(") >= 2


def test_what_no_program_can_say_is_refused():
    def elementwise(x, h):
        return x * h

    def readout(x, h):
        return matrix("W") @ h + vector("v")

    def twice(x, h):
        return matrix("W", 1.0) @ h + matrix("W", 2.0) @ x

    def forgetful(x, h):
        return 3.0

    for cell, words in (
        (elementwise, "multiply them by a matrix first"),
        (readout, "readout"),
        (twice, "different deviations"),
        (forgetful, "must return its 1 states"),
    ):
        with pytest.raises(ValueError, match=words):
            trace(cell)
    with pytest.raises(ValueError, match="no parameter 'sigma'"):
        trace(CELLS["gru"], sigma=1.0)
    plain = trace(CELLS["elman"]).to_dict()
    plain["instructions"][2]["of"] = ["g1", "g9"]
    with pytest.raises(ValueError, match="g9, which nothing has made"):
        Program.from_dict(plain)
    with pytest.raises(ValueError, match="code of your own"):
        trace(lambda x, h: nonlinearity(lambda z: z**3)(matrix("W") @ h + matrix("U") @ x)).to_dict()


# -- rules (27) and (28) ---------------------------------------------------------------------------------------------


def test_every_rule():
    def cell(x, h):
        g = matrix("W", 1.1) @ h
        k = matrix("U", 0.7) @ x
        e = matrix("U", 0.7) @ x - 2 * g + vector("b", 0.3, mean=0.5)
        return nonlinearity("erf")(g + k), nonlinearity("erf")(e)

    def one(x, h):
        out, second = cell(x, h)
        return out, second

    program = trace(one)
    X = as_batch(some((3, 3)))
    table = Table.own(program, X, True, {})
    cross = Table.cross(table, None)
    for _ in cross.each_output([(t, s) for t in range(3) for s in range(3)]):
        pass
    names = {each.right_side(str): each.out for each in program.instructions}
    g, k = (At(names[text], 2) for text in ("W h-", "U x"))
    e = At(next(out for text, out in names.items() if "b" in text), 2)
    x = np.stack(list(X))[:, 2]
    inner = 0.7**2 * x @ x.T / 2
    assert np.allclose(table.mean(e), 0.5)  # (27): linear combinations of means, and zero for products
    assert np.allclose(table.mean(g), 0.0)
    assert np.allclose(cross.pair(k, k).moment, inner)  # inputs
    recurrent = 1.1**2 * cross.pair(At("h", 1), At("h", 1)).moment
    assert np.allclose(cross.pair(g, g).moment, recurrent)  # one matrix
    assert np.allclose(cross.pair(g, k).moment, 0.0)  # two matrices
    assert np.allclose(cross.pair(e, g).moment, -2 * recurrent)  # linear on the left
    assert np.allclose(cross.pair(k, e).moment, inner)  # and on the right
    assert np.allclose(cross.pair(e, e).moment, inner + 4 * recurrent + 0.3**2 + 0.5**2)


@pytest.mark.parametrize("activation", ["relu", "erf"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_equations_of_the_paper(activation, depth):
    """(13) to (19) and their form for several layers, written out, for unequal lengths: Σ, Π and Θ."""
    sw, su, sb, sh, sv = 1.3, 0.8, 0.2, 0.4, 1.1
    T, S = 3, 5
    x, y = some((T, S))
    program = trace(CELLS["elman"], depth=depth, sigma_h=sh, activation=activation, sigma_w=sw, sigma_u=su, sigma_b=sb)

    def V(q, p, s):  # noqa: N802
        if activation == "erf":
            product = (1 + 2 * q) * (1 + 2 * p)
            return 2 / np.pi * np.arcsin(2 * s / np.sqrt(product)), 4 / np.pi / np.sqrt(product - 4 * s * s)
        c = np.clip(s / np.sqrt(q * p), -1, 1)
        value = np.sqrt(q * p) * (c * (np.pi - np.arccos(c)) + np.sqrt(1 - c * c)) / (2 * np.pi)
        return value, (np.pi - np.arccos(c)) / (2 * np.pi)

    def forward(a, b, q, p, same):
        sigma, hidden = {}, {}
        for t in range(len(a)):
            for s in range(len(b)):
                below = a[t] @ b[s] / 2
                for layer in range(depth):
                    start = sh**2 if same and t == s == 0 else 0.0
                    before = hidden[layer, t - 1, s - 1][0] if t and s else start
                    sigma[layer, t, s] = sw**2 * before + su**2 * below + sb**2
                    own = sigma[layer, t, s] if q is None and t == s else None
                    first = own if own is not None else q[layer, t, t] if q else sigma[layer, t, t]
                    second = own if own is not None else p[layer, s, s] if p else sigma[layer, s, s]
                    hidden[layer, t, s] = V(first, second, sigma[layer, t, s])
                    below = hidden[layer, t, s][0]
        return sigma, hidden

    def along(a):  # variances need the diagonal only
        q = {}
        for t in range(len(a)):
            below = a[t] @ a[t] / 2
            for layer in range(depth):
                before = V(*[q[layer, t - 1, t - 1]] * 3)[0] if t else sh**2
                q[layer, t, t] = sw**2 * before + su**2 * below + sb**2
                below = V(*[q[layer, t, t]] * 3)[0]
        return q

    sigma, hidden = forward(x, y, along(x), along(y), False)
    pi = {}
    for t in reversed(range(T)):
        for s in reversed(range(S)):
            for layer in reversed(range(depth)):
                slope = hidden[layer, t, s][1]
                top = sv**2 if layer == depth - 1 and (t, s) == (T - 1, S - 1) else 0.0
                later = sw**2 * pi.get((layer, t + 1, s + 1), 0.0)
                above = su**2 * pi[layer + 1, t, s] if layer + 1 < depth else 0.0
                pi[layer, t, s] = slope * (top + later + above)

    X, Y = as_batch([x]), as_batch([y])
    moments = exact_moments(program, X, Y, sigma_v=sv)
    g_vars = [each.of[0] for each in program.instructions if type(each).__name__ == "Nonlin"]
    delta = {g: next(e for e in program.instructions if e.out == g).of[0] for g in g_vars}
    for layer, g in enumerate(g_vars):
        for t in range(T):
            for s in range(S):
                got = moments.table.pair(At(g, t), At(g, s)).moment[0, 0]
                assert got == pytest.approx(sigma[layer, t, s], rel=1e-12)
                one, other = (side.signals[At(delta[g], at)] for side, at in ((moments.left, t), (moments.right, s)))
                back = float(np.ravel(moments.moment(one, other))[0])
                assert back == pytest.approx(pi[layer, t, s], rel=1e-11, abs=1e-15)
                if s - t != S - T:
                    assert back == 0.0  # (19), (40)
                for other_layer, k in enumerate(g_vars):
                    if other_layer != layer:
                        assert moments.table.pair(At(g, t), At(k, s)).moment[0, 0] == 0.0  # (38)
    K = sv**2 * hidden[depth - 1, T - 1, S - 1][0]
    theta = K + sum(pi[key] * sigma[key] for key in pi)  # (11)
    kernel = ProgramKernel(
        "elman", depth=depth, sigma_h=sh, sigma_v=sv, activation=activation, sigma_w=sw, sigma_u=su, sigma_b=sb
    )
    assert kernel.nngp([x], [y])[0, 0] == pytest.approx(K, rel=1e-12)
    assert kernel([x], [y])[0, 0] == pytest.approx(theta, rel=1e-12)


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", "sigmoid", "cos", "gelu", "snake(1.0)"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"depth": 2, "readout": "mean", "sigma_h": 0.3},
        {"tied": False, "readout": "mean"},
        {"normalize": True, "depth": 2},
    ],
)
def test_elman_is_the_rntk(activation, options):
    X = some((4, 6, 4, 3))
    sigmas = {"sigma_w": 1.2, "sigma_u": 0.8, "sigma_b": 0.3, "sigma_v": 1.1}
    ours = ProgramKernel("elman", activation=activation, **sigmas, **options)
    theirs = RNTK(activation, **sigmas, **options)
    scale = np.abs(theirs(X)).max()
    for got, due in ((ours(X), theirs(X)), (ours(X, X[:2]), theirs(X, X[:2])), (ours.diag(X), theirs.diag(X))):
        assert np.abs(got - due).max() < 1e-12 * scale
    assert np.abs(ours.nngp(X) - theirs.nngp(X)).max() < 1e-12 * scale


def test_leaky_by_its_table():
    """M[t,s] = (1-a)(M[t-1,s] + M[t,s-1]) - (1-a)² M[t-1,s-1] + a² V[t,s], and the same of tangents."""
    a, sw, su = 0.3, 1.2, 0.9
    X = some((6, 4))
    stack = np.zeros((2, 2, 2, 7, 7))  # (moment or tangent, x, y, t, s)

    def inner(i, j, t, s):
        return sw**2 * stack[0, i, j, t - 1, s - 1] + su**2 * X[i][t - 1] @ X[j][s - 1] / 2

    for t, s in sorted(np.ndindex(7, 7), key=lambda at: (max(at), at)):
        for i, j in np.ndindex(2, 2):
            if not (0 < t <= len(X[i]) and 0 < s <= len(X[j])):
                continue
            sigma = inner(i, j, t, s)
            product = (1 + 2 * inner(i, i, t, t)) * (1 + 2 * inner(j, j, s, s))
            value = 2 / np.pi * np.arcsin(2 * sigma / np.sqrt(product))
            slope = 4 / np.pi / np.sqrt(product - 4 * sigma**2)
            theta = sigma + sw**2 * stack[1, i, j, t - 1, s - 1]
            for k, fresh in enumerate((value, slope * theta)):
                m = stack[k, i, j]
                m[t, s] = (1 - a) * (m[t - 1, s] + m[t, s - 1]) - (1 - a) ** 2 * m[t - 1, s - 1] + a**2 * fresh
    kernel = ProgramKernel("leaky", leak=a, activation="erf", sigma_w=sw, sigma_u=su)
    at = [[stack[:, i, j, len(X[i]), len(X[j])] for j in range(2)] for i in range(2)]
    assert np.allclose(kernel.nngp(X), [[each[0] for each in row] for row in at], rtol=1e-12)
    assert np.allclose(kernel(X), [[each.sum() for each in row] for row in at], rtol=1e-12)


@pytest.mark.parametrize("name", ["elman", "leaky", "residual", "multiplicative", "state_space", "dilated"])
def test_backward_gives_the_same_kernel(name):
    kernel = ProgramKernel(name, sigma_v=1.3)
    X, Y = as_batch(some((5, 5))), as_batch(some((3, 3), seed=1))
    moments = exact_moments(kernel.program(), X, Y, sigma_v=1.3)
    out = kernel.program().output
    K = 1.3**2 * moments.table.pair(At(out, 4), At(out, 2)).moment
    K = K + tangent_kernel(moments, source_moment(moments.table), {})
    assert np.allclose(K, kernel(X, Y), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", EXACT)
def test_groups_of_weights_add_up(name):
    """Frozen groups and learning rates are one argument: every group's share, times its rate."""
    X = some((5, 3))
    kernel = ProgramKernel(name)
    groups = ["v", *kernel.program().weight]
    alone = [ProgramKernel(name, rates={g: float(g == h) for g in groups})(X) for h in groups]
    assert np.allclose(sum(alone), kernel(X), rtol=1e-12)
    rates = {g: 0.5 + k for k, g in enumerate(groups)}
    weighed = sum(rate * part for rate, part in zip(rates.values(), alone, strict=True))
    assert np.allclose(ProgramKernel(name, rates=rates)(X), weighed, rtol=1e-12)
    with pytest.raises(ValueError, match="groups of weights are"):
        ProgramKernel(name, rates={"Q": 1.0})(X)


def test_means_enter_expectations():
    """A bias with a mean: E[φ(μ + z) φ(μ + z')] by a grid of Gauss and Hermite."""

    def cell(x, h, *, activation="tanh"):
        return nonlinearity(activation)(matrix("U", 0.9) @ x + vector("b", 0.2, mean=0.7))

    x, y = some((1, 1))
    inner = np.array([[x[0] @ x[0], x[0] @ y[0]], [y[0] @ x[0], y[0] @ y[0]]]) * 0.9**2 / 2 + 0.2**2
    z, w = np.polynomial.hermite_e.hermegauss(80)
    w = w / w.sum()
    root = np.linalg.cholesky(inner)
    first = 0.7 + root[0, 0] * z[:, None]
    second = 0.7 + root[1, 0] * z[:, None] + root[1, 1] * z
    due = w @ (np.tanh(first) * np.tanh(second)) @ w
    slope = w @ ((1 - np.tanh(first) ** 2) * (1 - np.tanh(second) ** 2)) @ w
    kernel = ProgramKernel(cell)
    assert kernel.exact
    assert kernel.nngp([x], [y])[0, 0] == pytest.approx(due, rel=1e-8)
    assert kernel([x], [y])[0, 0] == pytest.approx(due + slope * inner[0, 1], rel=1e-8)


def test_two_functions_of_one_gaussian():
    """erf of one product times and beside its exponential: Stein and Mehler instead of one activation's closed form."""

    def cell(x, h):
        g = matrix("U", 1.0) @ x
        return nonlinearity("erf")(g) + 0.5 * nonlinearity("gaussian")(g) + 0.25 * g

    x = np.array([[0.8]])
    z, w = np.polynomial.hermite_e.hermegauss(120)
    g = 0.8 * z
    due = (w / w.sum()) @ (special.erf(g) + 0.5 * np.exp(-(g**2)) + 0.25 * g) ** 2
    slope = (w / w.sum()) @ (2 / np.sqrt(np.pi) * np.exp(-(g**2)) - g * np.exp(-(g**2)) + 0.25) ** 2
    kernel = ProgramKernel(cell)
    assert kernel.nngp([x])[0, 0] == pytest.approx(due, rel=1e-10)
    assert kernel([x])[0, 0] == pytest.approx(due + slope * 0.64, rel=1e-10)


def test_attention_by_hand():
    x = some((4,))[0]
    plain = ProgramKernel("elman", activation="erf")
    table = np.array([[plain.nngp([x[: t + 1]], [x[: s + 1]])[0, 0] for s in range(4)] for t in range(4)])
    theta = np.array([[plain([x[: t + 1]], [x[: s + 1]])[0, 0] for s in range(4)] for t in range(4)])
    alpha = special.softmax(table[:, -1])
    kernel = ProgramKernel("elman", activation="erf", readout="attention")
    # A prefix is aligned at its end, as another sequence; within one all steps are compared.
    steps = RNTK("erf", readout="sequence")
    assert kernel([x])[0, 0] == pytest.approx(alpha @ steps([x]) @ alpha, rel=1e-12)
    assert kernel.nngp([x])[0, 0] == pytest.approx(alpha @ steps.nngp([x]) @ alpha, rel=1e-12)
    assert np.allclose(theta, steps([x]), rtol=1e-12)


def test_corollary_1_is_checked():
    program = trace(CELLS["elman"])
    check_fresh(program)
    with pytest.raises(ValueError, match="Corollary 1"):
        backward(replace(program, readout_mean=1.0), 2)


# -- kernels for learners --------------------------------------------------------------------------------------------


def labelled(n=20):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return [
        np.sin(np.linspace(0, 3 + 2 * k, 8 + i % 3)) + 0.2 * rng.standard_normal(8 + i % 3) for i, k in enumerate(y)
    ], y


def own_cell(x, h, *, sigma=1.0):
    return nonlinearity("tanh")(matrix("W", sigma) @ h + matrix("U") @ x)


@pytest.mark.parametrize("kernel", [ProgramKernel("leaky", leak=0.3), ProgramKernel("gru", points=128, scrambles=2)])
def test_learners_and_files(kernel, tmp_path):
    X, y = labelled()
    assert RNTKSVC(kernel).fit(X, y).score(X, y) > 0.9
    model = RNTKRidgeClassifier(kernel).fit(X, y)
    save(model, tmp_path / "model.rntk")
    again = load(tmp_path / "model.rntk")
    assert again.kernel_ == model.kernel_
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def test_a_cell_of_the_users_own(tmp_path):
    X, y = labelled()
    kernel = ProgramKernel(own_cell, sigma=1.2)
    model = RNTKRidgeClassifier(kernel).fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(ModelFileError, match="Python function"):
        save(model, tmp_path / "model.rntk")
    found = RNTKClassifier(start=ProgramKernel(own_cell, normalize=True), progress=False).fit(X, y)
    assert found.score(X, y) > 0.9
    with pytest.raises(TypeError, match="no parameter 'sigmas'"):
        ProgramKernel(own_cell, sigmas=1.0)


def test_gradients_by_hyperparameters():
    X = some((4, 3))
    K, gradient = ProgramKernel("elman", activation="erf", sigma_b=0.2)(X, eval_gradient=True)
    exact = RNTK("erf", sigma_b=0.2)(X, eval_gradient=True)[1]
    names = [each.name for each in ProgramKernel("elman", sigma_b=0.2).hyperparameters]
    theirs = [each.name for each in RNTK("erf", sigma_b=0.2).hyperparameters if not each.fixed]
    for k, name in enumerate(names):
        assert np.abs(gradient[:, :, k] - exact[:, :, theirs.index(name)]).max() < 1e-6 * np.abs(K).max()


def test_sensitivity_by_differences():
    X = np.random.default_rng(0).standard_normal((3, 6))
    ours, theirs = (sensitivity(kernel, X) for kernel in (ProgramKernel("elman", activation="erf"), RNTK("erf")))
    assert "differences" in repr(ours)
    assert "differences" not in repr(theirs)
    assert np.allclose(ours.mean, theirs.mean, rtol=1e-7)
    assert np.allclose(ours.normalised, theirs.normalised, rtol=1e-7)
    assert sensitivity(ProgramKernel("gru", points=64, scrambles=2), X[:2]).mean.shape == (6,)
