/* The landmarks nearest to each row, and ‖x − l‖² − ‖x‖².
 *
 * A matrix product that writes all distances, from which others then take the smallest few, spends
 * much of its time on taking them. Here rows stand side by side: a vector holds one feature of as
 * many rows as it has lanes. The distances of these rows to one landmark are then one vector, which
 * is compared with each row's farthest neighbour so far; where one is nearer, all rows put the
 * landmark in its place by comparing and choosing. Landmarks of a panel stay in the first cache
 * while rows pass by. Every sum runs over its terms in order: the bits of a row's distances depend
 * neither on its neighbours nor on the processor. Of equally near landmarks the first is taken. */

#include "vec.h"

enum { VECTORS = 2 }; /* of rows in a group */
#include "turn.h"

enum { PANEL = REGISTERS == 32 ? 12 : 6 }; /* landmarks whose sums are in registers */
enum { GROUPS = 6 }; /* groups of rows that pass a panel: what the second cache holds */

/* A landmark's number, where the bits of a real are. */
INLINE vec number(int64_t n)
{
    whole bits = (whole)n;
    real x;
    memcpy(&x, &bits, sizeof x);
    return repeat(x);
}

/* distances[c] = lengths[c] + Σ_p turned[p] · panel[p][c] */
INLINE void distances_to(int width, const real *turned, int64_t m, const real *panel,
                         const real *lengths, vec distances[PANEL][VECTORS])
{
    vec sums[PANEL][VECTORS];
    UNROLLED for (int c = 0; c < width; c++)
        UNROLLED for (int v = 0; v < VECTORS; v++) sums[c][v] = repeat(lengths[c]);
    for (int64_t p = 0; p < m; p++, turned += AT_ONCE, panel += width) {
        vec x[VECTORS];
        UNROLLED for (int v = 0; v < VECTORS; v++) x[v] = load(turned + v * LANES);
        UNROLLED for (int c = 0; c < width; c++) {
            vec y = repeat(panel[c]);
            UNROLLED for (int v = 0; v < VECTORS; v++) sums[c][v] = multiply_add(x[v], y, sums[c][v]);
        }
    }
    UNROLLED for (int c = 0; c < width; c++)
        UNROLLED for (int v = 0; v < VECTORS; v++) distances[c][v] = sums[c][v];
}

/* Put landmarks of a panel that are near enough for some row among its nearest: `count` vectors of
 * distances, then as many of numbers, for each of the VECTORS. */
INLINE void compare(int count, int width, vec distances[PANEL][VECTORS], int64_t first, real *nearest)
{
    real *numbers = nearest + count * AT_ONCE;
    for (int v = 0; v < VECTORS; v++, nearest += LANES, numbers += LANES) {
        vec farthest = load(nearest + (count - 1) * AT_ONCE);
        unsigned near = 0; /* a bit a landmark: no branch for each of them */
        for (int c = 0; c < width; c++)
            near |= (unsigned)any(less(distances[c][v], farthest)) << c; /* NaN is not */
        for (; near; near &= near - 1) {
            int c = __builtin_ctz(near);
            vec distance = distances[c][v], value = distance, name = number(first + c);
            UNROLLED for (int j = 0; j < count; j++) {
                vec other = load(nearest + j * AT_ONCE), its_name = load(numbers + j * AT_ONCE);
                mask nearer = less(distance, other); /* and so for all behind, which move up */
                store(nearest + j * AT_ONCE, choose(nearer, value, other));
                store(numbers + j * AT_ONCE, choose(nearer, name, its_name));
                value = choose(nearer, other, value);
                name = choose(nearer, its_name, name);
            }
        }
    }
}

/* The distances of a group to a panel, in registers, and what is near enough of it. */
static void pass_panel(int width, int count, const real *turned, int64_t m, const real *panel,
                       const real *lengths, int64_t first, real *nearest)
{
    vec distances[PANEL][VECTORS];
    switch (width) {
#define WIDTH(w) case w: distances_to(w, turned, m, panel, lengths, distances); break;
        WIDTH(1) WIDTH(2) WIDTH(3) WIDTH(4) WIDTH(5) WIDTH(6)
#ifdef __AVX512F__
        WIDTH(7) WIDTH(8) WIDTH(9) WIDTH(10) WIDTH(11) WIDTH(12)
#endif
    }
    switch (count) {
#define COUNT(n) case n: compare(n, width, distances, first, nearest); break;
        COUNT(1) COUNT(2) COUNT(3) COUNT(4) COUNT(5)
    default: compare(count, width, distances, first, nearest);
    }
}

/* rows (n, m) of at least AT_ONCE rows; panels (n_panels, m, width), times −2; lengths (n_panels ·
 * width,), infinite where there is no landmark; room for GROUPS · AT_ONCE · (m + 2 · count) numbers;
 * values and columns (n, count). */
EXPORT void EXPORTED(nearest)(const real *rows, int64_t n_rows, int64_t m, const real *panels,
                  const real *lengths, int64_t n_panels, int64_t width, int64_t count, real *room,
                  real *values, int32_t *columns)
{
    real *turned = room, *nearest = room + GROUPS * m * AT_ONCE;
    for (int64_t begin = 0; begin < n_rows; begin += GROUPS * AT_ONCE) {
        int64_t groups = smaller((n_rows - begin + AT_ONCE - 1) / AT_ONCE, GROUPS);
        int64_t firsts[GROUPS];
        for (int64_t g = 0; g < groups; g++) {
            /* A last group that is too short is moved up; some rows are looked at twice. */
            firsts[g] = smaller(begin + g * AT_ONCE, n_rows - AT_ONCE);
            turn(rows + firsts[g] * m, m, turned + g * m * AT_ONCE);
            real *here = nearest + 2 * g * count * AT_ONCE;
            for (int64_t i = 0; i < count * AT_ONCE; i += LANES) {
                store(here + i, repeat((real)__builtin_inf()));
                store(here + count * AT_ONCE + i, number(0));
            }
        }
        for (int64_t i = 0; i < n_panels; i++)
            for (int64_t g = 0; g < groups; g++)
                pass_panel((int)width, (int)count, turned + g * m * AT_ONCE, m,
                           panels + i * width * m, lengths + i * width, i * width,
                           nearest + 2 * g * count * AT_ONCE);
        for (int64_t g = 0; g < groups; g++) {
            const real *here = nearest + 2 * g * count * AT_ONCE;
            for (int64_t r = 0; r < AT_ONCE; r++)
                for (int64_t j = 0; j < count; j++) {
                    int64_t to = (firsts[g] + r) * count + j;
                    whole bits;
                    memcpy(&bits, here + (count + j) * AT_ONCE + r, sizeof bits);
                    values[to] = here[j * AT_ONCE + r];
                    columns[to] = (int32_t)bits;
                }
        }
    }
}
