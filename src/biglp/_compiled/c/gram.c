/* The Gram matrix of a block's features, which are normalised on the way: F̄ᵀF̄ and F̄ᵀ1, where
 * F̄ = D^(−1/2)·F and d_i = f_i · weights.
 *
 * Some rows are normalised, summed, and copied to a tile that stays in the second cache. Of their
 * Gram matrix the upper triangle is made, four rows by a few vectors at once in registers, and added
 * in double. Where the columns do not fill their lines of 64 bytes, the gap comes before the first
 * one: the first rows of the triangle are the longest, and so the fewest cells are made for nothing. */

#include "vec.h"

enum { TILE_ROWS = 64 }; /* the second cache holds them, and each is worth a double addition */
enum { CELLS = 4 };      /* rows of the triangle whose sums are in registers, for some vectors */
enum { SOME = REGISTERS == 32 ? 6 : 3 };

/* 1/√d of some rows; whether a degree d is too low, or not a number. */
static int find_factors(const real *rows, int64_t n, int64_t p, const real *weights, int64_t width,
                        real least, real *factors)
{
    int64_t gap = width - p;
    rows -= gap;
    for (int64_t r = 0; r < n; r++, rows += p) {
        vec sums[PIECES];
        UNROLLED for (int i = 0; i < PIECES; i++)
            sums[i] = load_where(lanes_from(gap - i * LANES), rows + i * LANES) * load(weights + i * LANES);
        for (int64_t column = LOGICAL; column < width; column += LOGICAL)
            UNROLLED for (int i = 0; i < PIECES; i++) {
                int64_t at = column + i * LANES;
                sums[i] = multiply_add(load(rows + at), load(weights + at), sums[i]);
            }
        factors[r] = halved(sums);
    }
    int low = 0;
    for (int64_t r = 0; r < n; r += LANES) {
        vec degrees = choose(lanes_below(n - r), load(factors + r), repeat((real)__builtin_inf()));
        low |= any(not_above(degrees, repeat(least)));
        store(factors + r, repeat(1) / root(degrees));
    }
    return low;
}

/* Normalise some rows, copy them to the tile, and add them to the totals. */
static void normalise(real *rows, int64_t n, int64_t p, const real *factors, int64_t width, real *tile,
                      double *totals)
{
    int64_t gap = width - p;
    rows -= gap;
    for (int64_t column = 0; column < width; column += LANES, rows += LANES, tile += LANES) {
        vec total = repeat(0);
        mask those = lanes_from(gap - column);
        for (int64_t r = 0; r < n; r++) {
            real *from = rows + r * p;
            vec x = column < gap ? load_where(those, from) : load(from);
            x = x * repeat(factors[r]);
            if (column < gap)
                store_where(those, from, x);
            else
                store(from, x);
            store(tile + r * width, x);
            total = total + x;
        }
        add_to_doubles(total, totals + column);
    }
}

/* Rows i, i + 1, … of the triangle, `count` vectors from `column` on. */
INLINE void cells(int count, const real *tile, int64_t n, int64_t width, int64_t i, int64_t column,
                  double *sums)
{
    vec found[CELLS][SOME];
    UNROLLED for (int c = 0; c < CELLS; c++)
        UNROLLED for (int v = 0; v < count; v++) found[c][v] = repeat(0);
    for (int64_t r = 0; r < n; r++, tile += width) {
        vec y[SOME];
        UNROLLED for (int v = 0; v < count; v++) y[v] = load(tile + column + v * LANES);
        UNROLLED for (int c = 0; c < CELLS; c++) {
            vec x = repeat(tile[i + c]);
            UNROLLED for (int v = 0; v < count; v++) found[c][v] = multiply_add(x, y[v], found[c][v]);
        }
    }
    UNROLLED for (int c = 0; c < CELLS; c++)
        UNROLLED for (int v = 0; v < count; v++)
            add_to_doubles(found[c][v], sums + (i + c) * width + column + v * LANES);
}

/* Add the upper triangle of the tile's Gram matrix; `next` comes from memory meanwhile. */
static void multiply(const real *tile, int64_t n, int64_t p, int64_t width, const real *next,
                     double *sums)
{
    int64_t n_vectors = width / LANES;
    for (int64_t i = (width - p) / CELLS * CELLS; i < width; i += CELLS) {
        for (int64_t j = 0; j < CELLS * TILE_ROWS; j += LOGICAL)
            __builtin_prefetch(next + i * TILE_ROWS + j);
        for (int64_t v = i / LANES, size; v < n_vectors; v += size) {
            int64_t left = n_vectors - v, groups = (left + SOME - 1) / SOME;
            size = (left + groups - 1) / groups; /* of about equal groups */
            switch (size) {
#define SIZE(k) case k: cells(k, tile, n, width, i, v * LANES, sums); break;
                SIZE(1) SIZE(2) SIZE(3)
#ifdef __AVX512F__
                SIZE(4) SIZE(5) SIZE(6)
#endif
            }
        }
    }
}

/* features (n, p), from row `at[0]` on; weights (width,), zero in the gap; factors, room for n and
 * LOGICAL more; tile
 * (TILE_ROWS, width); sums (width + 1, width), whose last line is that of the totals;
 * out (p, p). Where rows are to be looked at more closely it returns, and at[0] is the first of up to
 * TILE_ROWS of them; at[1] says that the factors of the first tile are given. */
EXPORT void EXPORTED(gram)(real *features, int64_t n_rows, int64_t p, const real *weights, int64_t width,
                           double least, real *factors, real *tile, double *sums, double *out,
                           int64_t *at)
{
    for (; at[0] < n_rows; at[0] += TILE_ROWS, at[1] = 0) {
        int64_t begin = at[0], n = smaller(n_rows - begin, TILE_ROWS);
        real *rows = features + begin * p;
        if (!at[1] && find_factors(rows, n, p, weights, width, (real)least, factors + begin))
            return;
        normalise(rows, n, p, factors + begin, width, tile, sums + width * width);
        multiply(tile, n, p, width, rows + TILE_ROWS * p, sums);
    }
    for (int64_t i = 0, gap = width - p; i < p; i++)
        for (int64_t j = i; j < p; j++)
            out[i * p + j] = out[j * p + i] = sums[(i + gap) * width + gap + j];
}
