"""Programs whose gates multiply: samples, their recursion of tangents, and limits that other programs have found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from rntk.programs import CELLS, ProgramKernel, SampleSet, matrix, nonlinearity, trace, vector
from rntk.programs.backward import sampled_kernel
from rntk.programs.sampling import Noise
from rntk.runtime import Execution

SIGMOID, TANH = nonlinearity("sigmoid"), nonlinearity("tanh")
HERE = Execution(1, False)


def toy(seed=3, lengths=(6, 5, 3), m=2):
    """Three correlated sequences, for which limits are known from two million samples of another implementation."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((max(lengths), m))
    return [0.7 * base[:t] + 0.7 * rng.standard_normal((t, m)) for t in lengths]


def gates(w, u, b, names):
    """Deviations by gate, another one for each."""
    return {
        "sigma_w": {k: w + 0.1 * (j - 1) for j, k in enumerate(names)},
        "sigma_u": {k: u - 0.05 * j for j, k in enumerate(names)},
        "sigma_b": {k: b + 0.1 * (j % 2) for j, k in enumerate(names)},
    }


def after():
    """A reset gate after the product: its matrix has the third deviation, the inputs of the candidate the fourth."""
    w = {"z": 1.2, "r": 1.3, "c": 1.4}
    u = {"z": 1.2, "r": 1.15, "c": 1.05}
    return {"reset": "after", "sigma_w": w, "sigma_u": u, "sigma_b": {"z": 0.4, "r": 0.5, "h": 0.4, "c": 0.5}}


SETTINGS = {
    "torch": ("gru", after()),
    "cho": ("gru", {"reset": "before", **gates(1.3, 1.2, 0.4, "zrc")}),
    "lstm": ("lstm", gates(1.3, 1.2, 0.4, "ifgo")),
    "minimal": (
        "minimal",
        {"sigma_w": {"z": 1.4, "c": 1.6}, "sigma_u": {"z": 1.2, "c": 1.1}, "sigma_b": {"z": 0.4, "c": 0.3}},
    ),
}
#: NNGP and NTK of pairs (0,0) (0,1) (0,2) (1,1) (1,2) (2,2), and the standard error of the NTK.
LIMITS = {
    "torch": ([0.2224, 0.1587, 0.0925, 0.3426, 0.0488, 0.2807], [0.8375, 0.5284, 0.2484, 1.1794, 0.1875, 0.8012], 5e-4),
    "cho": ([0.1921, 0.1290, 0.0649, 0.3325, 0.0232, 0.2724], [0.7915, 0.4725, 0.1903, 1.1709, 0.1326, 0.7876], 3e-4),
    "lstm": ([0.0349, 0.0169, 0.0116, 0.0753, 0.0024, 0.0612], [0.1447, 0.0654, 0.0334, 0.2928, 0.0151, 0.1900], 1e-4),
    "minimal": (None, [0.8712, 0.4467, 0.1625, 1.2037, 0.1188, 0.8130], 6e-4),
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("sampler", ["sobol", "network"])
def test_limits(name, sampler):
    cell, settings = SETTINGS[name]
    found = ProgramKernel(cell, sampler=sampler, **settings).both(toy())
    upper = np.triu_indices(3)
    nngp, ntk, error = LIMITS[name]
    assert (np.abs(found.ntk[upper] - ntk) < 4 * np.hypot(found.ntk_error[upper], error)).all()
    if nngp is not None:
        assert (np.abs(found.nngp[upper] - nngp) < 4 * np.hypot(found.nngp_error[upper], 2e-4)).all()
    assert np.linalg.eigvalsh(found.ntk)[0] > 0
    scale = np.sqrt(np.outer(np.diag(found.ntk), np.diag(found.ntk)))
    assert (found.ntk_error / scale).max() < 0.015


def two_numbers(x, h, c, *, sigma=1.3):
    """An LSTM whose candidate reads o h + c/2: both states, and the output gate, enter a matrix."""
    i, f, o = (SIGMOID(matrix(f"W_{k}", sigma) @ h + matrix(f"U_{k}", 1.1) @ x) for k in "ifo")
    c = f * c + i * TANH(matrix("W_g", sigma) @ (o * h + 0.5 * c) + matrix("U_g", 1.2) @ x)
    return o * TANH(c), c


def peephole(x, h, c, *, sigma=1.3):
    """The output gate reads the new state, within the step."""
    i, f = (SIGMOID(matrix(f"W_{k}", sigma) @ h + matrix(f"U_{k}", 1.1) @ x) for k in "if")
    c = f * c + i * TANH(matrix("W_g", sigma) @ h + matrix("U_g", 1.2) @ x)
    return SIGMOID(matrix("W_o", sigma) @ h + matrix("V_o") @ c + vector("b", 0.3)) * TANH(c), c


def shared(x, h, c):
    """One matrix reads both states."""
    W = matrix("W", 1.2)
    a, b = TANH(W @ h + matrix("U") @ x), SIGMOID(W @ c + vector("b", 0.4))
    return b * h + (1 - b) * a, 0.5 * c + a * b


PROGRAMS = {
    **{name: trace(CELLS[cell], **settings) for name, (cell, settings) in SETTINGS.items()},
    "two layers": trace(CELLS["gru"], depth=2),
    "own": trace(two_numbers),
    "peephole": trace(peephole),
    "shared": trace(shared),
}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_and_backward_agree(name, tied):
    """The table of tangents, and the sum over the backward program: two ways, on the same samples."""
    program = PROGRAMS[name]
    samples = SampleSet(program, tied=tied, points=32, scrambles=1, method="random", keep_values=True)
    samples.add(toy(lengths=(4, 3)), HERE)
    kept, rates = samples.kept[0], {"v": 0.7, program.weights[0].name: 0.3}
    for i, j in ((0, 0), (0, 1), (1, 0)):
        forward = samples.tangents(kept[i], kept[j], rates) + rates["v"] * samples.moments(kept[i], kept[j])
        back = sampled_kernel(samples, 0, i, j, rates)
        assert forward[-1, -1] == pytest.approx(back, rel=1e-13)


def test_prefixes_are_in_the_table():
    samples = SampleSet(PROGRAMS["torch"], points=64, scrambles=1, method="network")
    x = toy()[0]
    numbers = samples.add([x, x[:4]], HERE)
    with samples.of_replicate(0, set(numbers)) as kept:
        whole, cut = (samples.tangents(kept[0], kept[k], {}) for k in numbers)
    assert np.allclose(whole[:, :4], cut, rtol=1e-12)


def test_still_gates_make_a_leaky_cell():
    """Without deviations z = r = 1/2, which is the leaky cell with a = 1/2 and half of σ_w, and that is exact."""
    X = toy()
    still = {"z": 0.0, "r": 0.0, "c": 1.4}
    ones = {"z": 0.0, "r": 0.0, "c": 1.0}
    gated = ProgramKernel("gru", reset="before", sigma_w=still, sigma_u=ones, points=2**12, sampler="sobol")
    exact = ProgramKernel("leaky", leak=0.5, activation="tanh", sigma_w=0.7)
    found = gated.both(X)
    assert (np.abs(found.ntk - exact(X)) < 4 * found.ntk_error + 1e-4).all()
    assert (np.abs(found.nngp - exact.nngp(X)) < 4 * found.nngp_error + 1e-4).all()


def test_untied_gru_in_closed_form():
    """With fresh weights at every step gates are independent of the state, and two numbers per step are enough."""
    alpha = np.sqrt(np.pi) / 4
    gate = nonlinearity(
        lambda g: (1 + special.erf(alpha * g)) / 2, lambda g: alpha / np.sqrt(np.pi) * np.exp(-((alpha * g) ** 2))
    )
    sw, su, sb = 1.3, 1.1, 0.4
    options = {"reset": "before", "gate": gate, "activation": "erf", "sigma_w": sw, "sigma_u": su, "sigma_b": sb}
    X = toy(lengths=(5, 5))

    def V(q, p, s, c=1.0):  # noqa: N802
        q, p, s = c**2 * q, c**2 * p, c**2 * s
        product = (1 + 2 * q) * (1 + 2 * p)
        return 2 / np.pi * np.arcsin(2 * s / np.sqrt(product)), c**2 * 4 / np.pi / np.sqrt(product - 4 * s * s)

    def along(first, second, values):
        """k and n of a pair; `values` are the k of both sequences with themselves."""
        k = n = 0.0
        track = []
        for t, (x, y) in enumerate(zip(first, second, strict=True)):
            own = [k, k] if values is None else [each[t] for each in values]
            inner = [su**2 * a @ b / 2 + sb**2 for a, b in ((x, x), (y, y), (x, y))]
            g = [sw**2 * moment + i for moment, i in zip((*own, k), inner, strict=True)]
            gates_ = [
                (1 / 4 + value / 4, slope / 4)
                for value, slope in (
                    V(*q, c=alpha) for q in ((g[0], g[0], g[0]), (g[1], g[1], g[1]), (g[0], g[1], g[2]))
                )
            ]
            R = [each[0] for each in gates_]
            s = [sw**2 * r * moment + i for r, moment, i in zip(R, (*own, k), inner, strict=True)]
            value, slope = V(*s)
            Z, Z_dot = gates_[2]
            theta = g[2] + sw**2 * n
            theta_c = s[2] + sw**2 * (Z * n + k * Z_dot * theta)
            track.append(k)
            k, n = Z * (value + k), Z * n + (k + value) * Z_dot * theta + Z * slope * theta_c
        return k, n, track

    own = [along(x, x, None) for x in X]
    kernel = ProgramKernel("gru", tied=False, points=2**12, sampler="sobol", **options)
    found = kernel.both(X)
    for i in range(2):
        k, n, _ = own[i]
        assert abs(found.nngp[i, i] - k) < 4 * found.nngp_error[i, i]
        assert abs(found.ntk[i, i] - k - n) < 4 * found.ntk_error[i, i]
    k, n, _ = along(*X, [own[0][2], own[1][2]])
    assert abs(found.nngp[0, 1] - k) < 4 * found.nngp_error[0, 1]
    assert abs(found.ntk[0, 1] - k - n) < 4 * found.ntk_error[0, 1]
    tied = ProgramKernel("gru", **options).both(X)
    assert tied.ntk[0, 0] - found.ntk[0, 0] > 10 * tied.ntk_error[0, 0]  # Theorem 3 doesn't hold for gates


def test_one_sample_set_for_all_sequences():
    X = toy()
    for sampler in ("network", "sobol"):
        kernel = ProgramKernel("gru", points=64, scrambles=2, sampler=sampler)
        K = kernel(X[:2])
        both = kernel(X, X[:2])
        assert np.allclose(both[:2], K, rtol=1e-6)  # what came later changed nothing
        assert np.allclose(kernel(X)[:2, :2], K, rtol=1e-6)
        assert np.allclose(kernel.diag(X[:2]), np.diag(K), rtol=1e-6)
        twice = kernel([*X, X[0]])
        assert np.allclose(twice[0], twice[3], rtol=1e-5)
        assert np.linalg.eigvalsh(twice)[0] > -1e-6
    alone = ProgramKernel("gru", points=64, scrambles=2)
    assert np.allclose(alone(X[2:], X[:1]), kernel.set_params(sampler="network")(X)[2:, :1], rtol=1e-6)


def test_noise_is_normal_and_even():
    noise = Noise(1024, np.random.default_rng(0), sobol=True)
    noise.reserve(100)
    z = noise.rows(100)
    u = special.ndtr(z)
    # One point in each interval, in every dimension; pairs of dimensions are closer to independent than random ones.
    assert (np.sort(np.floor(1024 * u), axis=1) == np.arange(1024)).all()
    correlations = (np.corrcoef(z) - np.eye(100)) * 1024**0.5
    assert np.sqrt(np.mean(correlations**2)) < 0.8
    assert noise.rows(3).shape == (3, 1024)  # beyond what was reserved: plain random numbers
