/* Features of a block: the Gaussian kernel exp(−γ‖x − l‖²), or a product x·l, and its column sums.
 *
 * A vector holds four features of each of a few landmarks. Four features of a row, repeated, are
 * multiplied by it, so that 20 landmarks of float fill five vectors of 64 bytes, where one landmark a
 * lane would waste a third of two. The four sums of a landmark are added at the end, those of four
 * rows at once, which leaves one vector of distances between four rows and a few landmarks; their
 * exponentials are taken while they are in registers. Sums run over their terms in one order: the
 * bits of a row's features depend neither on its neighbours nor on the processor. */

#include "vec.h"

enum { TERMS = 4 };           /* features of a landmark in a vector */
enum { ROWS = 4 };            /* whose sums are in registers, for some vectors of landmarks */
enum { EACH = LANES / TERMS }; /* landmarks in a vector */
enum { CHUNKS = REGISTERS == 32 ? 5 : 3 };
enum { PART = 24 }; /* rows that pass some landmarks before the next ones come: both stay in a cache */

/* Exponential of x, or 1 where rounding made x more than zero.
 *
 * With n = x / log 2, rounded, e^x = 2^n · e^r where |r| ≤ log(2) / 2, and a few terms of the series
 * give e^r to about one unit in the last place. n is added to the bits of its exponent; what would be
 * too small for a normal number is zero. */
INLINE vec exponential(vec x)
{
    typedef whole wholes __attribute__((vector_size(BYTES)));
#ifdef SINGLE
    enum { DEGREE = 7, EXPONENT = 23 }; /* the next term is less than a tenth of a unit */
    /* Adding the rounder puts the whole number into the last bits; n times `high` is exact. */
    const real rounder = 0x3p22f, high = 0x2c5cp-14f, least = -87;
#else
    enum { DEGREE = 13, EXPONENT = 52 };
    const real rounder = 0x3p51, high = 0x162e42fefa3p-41, least = -708;
#endif
    const double log2 = 0x1.62e42fefa39efp-1, log2_rest = 2.3190468138462996e-17;
    static const double factorials[] = {1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800,
                                        39916800, 479001600, 6227020800};
    vec zero = repeat(0);
    x = choose(less(x, zero), x, zero);
    vec shifted = multiply_add(x, repeat((real)(1 / log2)), repeat(rounder));
    vec n = shifted - repeat(rounder);
    real low = (real)(log2 - (double)high + log2_rest);
    vec r = multiply_add(n, repeat(-low), multiply_add(n, repeat(-high), x));
    vec series = repeat((real)(1 / factorials[DEGREE]));
    UNROLLED for (int i = DEGREE - 1; i >= 0; i--)
        series = multiply_add(series, r, repeat((real)(1 / factorials[i])));
    vec power = (vec)((wholes)series + ((wholes)shifted << EXPONENT)); /* n, where the exponent is */
    return choose(less(repeat(least), x), power, zero);
}

/* γ‖x‖² of ROWS rows; whether all are finite. */
INLINE int lengths_of(const real *rows, int64_t m, real gamma, real *lengths)
{
    vec sums[ROWS][PIECES];
    UNROLLED for (int r = 0; r < ROWS; r++)
        UNROLLED for (int i = 0; i < PIECES; i++) sums[r][i] = repeat(0);
#define SQUARED(LOADED)                                                                             \
    UNROLLED for (int r = 0; r < ROWS; r++)                                                         \
        UNROLLED for (int i = 0; i < PIECES; i++) {                                                 \
            vec x = LOADED;                                                                         \
            sums[r][i] = multiply_add(x, x, sums[r][i]);                                            \
        }
    int64_t p = 0;
    for (; p + LOGICAL <= m; p += LOGICAL)
        SQUARED(load(rows + r * m + p + i * LANES))
    if (p < m)
        SQUARED(load_where(lanes_below(m - p - i * LANES), rows + r * m + p + i * LANES))
    int finite = 1;
    UNROLLED for (int r = 0; r < ROWS; r++) {
        lengths[r] = halved(sums[r]) * gamma;
        finite &= lengths[r] < (real)__builtin_inf();
    }
    return finite;
}

/* Four parts of each sum of four rows, added: a landmark's four rows are neighbours then. */
INLINE vec added(const vec x[ROWS])
{
#ifdef SINGLE
    vec first = zip_low(x[0], x[1]) + zip_high(x[0], x[1]);
    vec second = zip_low(x[2], x[3]) + zip_high(x[2], x[3]);
    return low_halves(first, second) + high_halves(first, second);
#else
    vec first = low_halves(x[0], x[2]) + high_halves(x[0], x[2]);
    vec second = low_halves(x[1], x[3]) + high_halves(x[1], x[3]);
    return zip_low(first, second) + zip_high(first, second);
#endif
}

typedef struct {
    const real *rows, *lengths;     /* of a part of the rows */
    const real *landmarks, *starts; /* of some chunks */
    real *out;                      /* where their first column is */
    double *sums;
    int64_t begin, end, last, m, k; /* the last row that a group may begin with */
    int64_t n_columns;              /* that are left */
    int gaussian, fetches;
} job;

/* Features of the rows of a part for `count` chunks, and what they add to the sums of columns. */
INLINE void multiply(int count, const job *given)
{
    const job copied = *given, *j = &copied; /* what no store of numbers can change */
    const int64_t m = j->m, k = j->k, steps = (m + TERMS - 1) / TERMS, origin = smaller(j->begin, j->last);
    static const real within[] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
    vec totals[CHUNKS];
    UNROLLED for (int c = 0; c < count; c++) totals[c] = repeat(0);
    for (int64_t begin = j->begin; begin < j->end; begin += ROWS) {
        /* A last group that is too short is moved up: a few rows are made twice. */
        int64_t row = smaller(begin, j->last);
        if (j->fetches) {
            const real *next = j->rows + (begin + PART) * m;
            for (int64_t i = 0; i < ROWS * m; i += LOGICAL) __builtin_prefetch(next + i);
        }
        vec sums[CHUNKS][ROWS];
        UNROLLED for (int c = 0; c < count; c++)
            UNROLLED for (int r = 0; r < ROWS; r++) sums[c][r] = load(j->starts + c * LANES);
        const real *x = j->rows + row * m, *landmarks = j->landmarks;
        for (int64_t step = 0; step < steps; step++, landmarks += LANES) {
            const real *four = x + smaller(step * TERMS, m - TERMS);
            vec y[CHUNKS];
            UNROLLED for (int c = 0; c < count; c++) y[c] = load(landmarks + c * steps * LANES);
            UNROLLED for (int r = 0; r < ROWS; r++) {
                vec numbers = FOUR(four + r * m);
                UNROLLED for (int c = 0; c < count; c++)
                    sums[c][r] = multiply_add(numbers, y[c], sums[c][r]);
            }
        }
        vec lengths = FOUR(j->lengths + row - origin);
        real *out = j->out + row * k;
        vec features[CHUNKS];
        UNROLLED for (int c = 0; c < count; c++) {
            features[c] = added(sums[c]);
            if (j->gaussian)
                features[c] = exponential(features[c] - lengths);
        }
        if (row == begin)
            UNROLLED for (int c = 0; c < count; c++) totals[c] = totals[c] + features[c];
        else { /* rows that were made before are not added again */
            mask before = less(load(within), repeat((real)(begin - row)));
            UNROLLED for (int c = 0; c < count; c++)
                totals[c] = totals[c] + choose(before, repeat(0), features[c]);
        }
        real turned[CHUNKS][LANES];
        UNROLLED for (int c = 0; c < count; c++) store(turned[c], in_columns(features[c]));
        if (j->n_columns >= count * EACH)
            UNROLLED for (int r = 0; r < ROWS; r++)
                UNROLLED for (int c = 0; c < count; c++)
                    memcpy(out + r * k + c * EACH, turned[c] + r * EACH, EACH * sizeof(real));
        else /* the last chunk is not full */
            for (int r = 0; r < ROWS; r++)
                for (int i = 0; i < j->n_columns; i++)
                    out[r * k + i] = turned[i / EACH][r * EACH + i % EACH];
    }
    UNROLLED for (int c = 0; c < count; c++) add_to_doubles(totals[c], j->sums + c * LANES);
}

/* rows (n, m) of at least ROWS rows and TERMS features; landmarks (chunks, steps, EACH, TERMS) times
 * 2γ, or as they are where γ is 0 and no exponential is taken; starts (chunks, EACH, TERMS) of the
 * sums; out (n, k); sums (chunks, EACH, 4) of columns; finite[0] becomes whether all rows are. */
EXPORT void EXPORTED(gaussian)(const real *rows, int64_t n_rows, int64_t m, const real *landmarks,
                               const real *starts, double gamma, int64_t k, real *out, double *sums,
                               int64_t *finite)
{
    int64_t n_chunks = (k + EACH - 1) / EACH, a_chunk = (m + TERMS - 1) / TERMS * LANES;
    real lengths[PART + ROWS];
    finite[0] = 1;
    for (int64_t begin = 0; begin < n_rows; begin += PART) {
        int64_t last = n_rows - ROWS, end = smaller(begin + PART, n_rows), origin = smaller(begin, last);
        for (int64_t row = begin; row < end && gamma > 0; row += ROWS) {
            int64_t from = smaller(row, last);
            finite[0] &= lengths_of(rows + from * m, m, (real)gamma, lengths + from - origin);
        }
        for (int64_t chunk = 0, size; chunk < n_chunks; chunk += size) {
            int64_t left = n_chunks - chunk, groups = (left + CHUNKS - 1) / CHUNKS;
            size = (left + groups - 1) / groups; /* of about equal groups */
            job some = {rows, lengths, landmarks + chunk * a_chunk, starts + chunk * LANES,
                        out + chunk * EACH, sums + chunk * LANES, begin, end, last, m, k,
                        k - chunk * EACH, gamma > 0, chunk == 0};
            switch (size) {
#define SIZE(n) case n: multiply(n, &some); break;
                SIZE(1) SIZE(2) SIZE(3)
#if defined(__AVX512F__)
                SIZE(4) SIZE(5)
#endif
            }
        }
    }
}
