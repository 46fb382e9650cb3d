/* The yardstick: the recursion of one ReLU layer in plain C, for gcc -O3 -march=native -ffast-math -fopenmp.

   Unit-vector form (docs/theory.md, section 7), Horner's rule with literal coefficients, one row of the Gram matrix
   after the other in blocks that stay in the first cache. Every pair i <= j of n sequences of T steps; b is the share
   of a bias, or 0. Out come Theta, row by row, above the diagonal. The file is compiled twice, with REAL double and
   float. */

#include <math.h>
#include <stdlib.h>

#include "coefficients.h"

#ifdef SINGLE
#define REAL float
#define SQRT sqrtf
#define NAME(x) x##_float32
static inline REAL poly_a(REAL v) {
    return ((((A5 * v + A4) * v + A3) * v + A2) * v + A1) * v + A0;
}
static inline REAL poly_b(REAL v) {
    return (((((B6 * v + B5) * v + B4) * v + B3) * v + B2) * v + B1) * v + B0;
}
#else
#define REAL double
#define SQRT sqrt
#define NAME(x) x##_float64
static inline REAL poly_a(REAL v) {
    return ((((((((((((((A15 * v + A14) * v + A13) * v + A12) * v + A11) * v + A10) * v + A9) * v + A8) * v + A7) * v
            + A6) * v + A5) * v + A4) * v + A3) * v + A2) * v + A1) * v + A0;
}
static inline REAL poly_b(REAL v) {
    return (((((((((((((((B16 * v + B15) * v + B14) * v + B13) * v + B12) * v + B11) * v + B10) * v + B9) * v + B8) * v
            + B7) * v + B6) * v + B5) * v + B4) * v + B3) * v + B2) * v + B1) * v + B0;
}
#endif

#define ROWS 4 /* of the Gram matrix at a time */

/* w = 1 - V and q = V' Theta of one lane, from u and Theta. */
static inline void relu(REAL u, REAL theta, REAL *w, REAL *q) {
    REAL v = u <= 1 ? u : 2 - u;
    v = v > 0 ? v : 0;
    REAL s = SQRT(v), side = s * poly_b(v);
    *w = (u <= 1 ? u : 1) - s * v * poly_a(v);
    *q = (u <= 1 ? 1 - side : side) * theta;
}

/* One step of n lanes of the table of steps: state moves one lane on, and is added up. */
static void advance(REAL gi, REAL fi, REAL bi, REAL norm, const REAL *restrict G, const REAL *restrict F,
                    const REAL *restrict B, const REAL *restrict w0, const REAL *restrict q0, REAL *restrict w1,
                    REAL *restrict q1, REAL *restrict V, REAL *restrict Q, int n) {
    for (int s = 0; s < n; s++) {
        REAL dg = gi - G[s], df = fi - F[s], db = bi - B[s], gg = gi * G[s], w, q;
        REAL u = gg * w0[s] + (REAL)0.5 * (dg * dg + df * df + db * db);
        relu(u, 1 - u + gg * q0[s], &w, &q);
        w1[s] = w, q1[s] = q;
        V[s] += norm * (1 - w);
        Q[s] += norm * q;
    }
}

/* Shares of the recurrent state (g), the input (f) and the bias (b) in every step's unit vector, and the norm. */
static void units(const REAL *x, int n, int T, REAL sw2, REAL bias, REAL *g, REAL *f, REAL *b, REAL *norm) {
    for (int i = 0; i < n; i++) {
        double q = 0;
        for (int t = 0; t < T; t++) {
            double state = sw2 / 2 * q, input = x[i * T + t];
            q = state + input * input + bias * bias;
            double over = q > 0 ? 1 / sqrt(q) : 0;
            g[t * n + i] = sqrt(state) * over;
            f[t * n + i] = input * over;
            b[t * n + i] = bias * over;
            norm[t * n + i] = sqrt(q / 2);
        }
    }
}

void NAME(last)(const REAL *x, int n, int T, REAL sw2, REAL bias, REAL *out) {
    size_t size = (size_t)n * T * sizeof(REAL);
    REAL *g = malloc(size), *f = malloc(size), *b = malloc(size), *norm = malloc(size);
    units(x, n, T, sw2, bias, g, f, b, norm);
#pragma omp parallel
    {
        REAL *W = malloc(ROWS * n * sizeof(REAL)), *Q = malloc(ROWS * n * sizeof(REAL));
#pragma omp for schedule(dynamic)
        for (int i = 0; i < n; i += ROWS) {
            int rows = n - i < ROWS ? n - i : ROWS;
            for (int k = 0; k < ROWS * n; k++) W[k] = 1, Q[k] = 0;
            for (int t = 0; t < T; t++)
                for (int r = 0; r < rows; r++) {
                    REAL *restrict w = W + r * n, *restrict q = Q + r * n;
                    const REAL *restrict G = g + t * n, *restrict F = f + t * n, *restrict B = b + t * n;
                    REAL gi = G[i + r], fi = F[i + r], bi = B[i + r];
                    for (int j = i; j < n; j++) {
                        REAL dg = gi - G[j], df = fi - F[j], db = bi - B[j], gg = gi * G[j];
                        REAL u = gg * w[j] + (REAL)0.5 * (dg * dg + df * df + db * db);
                        relu(u, 1 - u + gg * q[j], &w[j], &q[j]);
                    }
                }
            for (int r = 0; r < rows; r++)
                for (int j = i + r; j < n; j++) {
                    REAL both = norm[(T - 1) * n + i + r] * norm[(T - 1) * n + j];
                    out[(size_t)(i + r) * n + j] = both * (1 - W[r * n + j] + Q[r * n + j]);
                }
        }
        free(W), free(Q);
    }
    free(g), free(f), free(b), free(norm);
}

void NAME(mean)(const REAL *x, int n, int T, REAL sw2, REAL bias, REAL *out) {
    size_t size = (size_t)n * T * sizeof(REAL);
    REAL *g = malloc(size), *f = malloc(size), *b = malloc(size), *norm = malloc(size);
    units(x, n, T, sw2, bias, g, f, b, norm);
    REAL *G = malloc(size), *F = malloc(size), *B = malloc(size), *N = malloc(size);
    for (int i = 0; i < n; i++)
        for (int t = 0; t < T; t++) {
            G[i * T + t] = g[t * n + i], F[i * T + t] = f[t * n + i], B[i * T + t] = b[t * n + i];
            N[i * T + t] = norm[t * n + i];
        }
#pragma omp parallel
    {
        REAL *memory = malloc(6 * (T + 1) * sizeof(REAL));
        REAL *w = memory, *q = w + T + 1, *wn = q + T + 1, *qn = wn + T + 1, *V = qn + T + 1, *Q = V + T + 1;
#pragma omp for schedule(dynamic)
        for (int i = 0; i < n; i++)
            for (int j = i; j < n; j++) {
                for (int s = 0; s <= T; s++) w[s] = wn[s] = 1, q[s] = qn[s] = 0, V[s] = Q[s] = 0;
                for (int t = 0; t < T; t++) {
                    int at = i * T + t, to = j * T;
                    advance(G[at], F[at], B[at], N[at], G + to, F + to, B + to, w, q, wn + 1, qn + 1, V, Q, T);
                    REAL *swap = w;
                    w = wn, wn = swap, swap = q, q = qn, qn = swap;
                }
                double total = 0;
                for (int s = 0; s < T; s++) total += N[j * T + s] * (V[s] + Q[s]);
                out[(size_t)i * n + j] = total / ((double)T * T);
            }
        free(memory);
    }
    free(g), free(f), free(b), free(norm), free(G), free(F), free(B), free(N);
}
