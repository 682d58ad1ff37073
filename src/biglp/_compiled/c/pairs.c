/* Products of the entries of each row of Z with each other, added in whole units: the upper triangle
 * of Z'Z. Whole numbers are added exactly, so that order and threads do not matter. */

#include "vec.h"

/* The cell of two entries of a row, and their product in units; plain operations, as NumPy's. */
#define EACH_PAIR(then) \
    for (int64_t i = 0; i < s; i++) { \
        double weight = (double)weights[r * s + i] * scale; \
        for (int64_t j = i; j < s; j++) { \
            int64_t one = columns[r * s + i], other = columns[r * s + j]; \
            int64_t cell = one < other ? one * width + other : other * width + one; \
            int64_t units = (int64_t)(weight * (double)weights[r * s + j] + 0.5); \
            then; \
        } \
    }

/* columns and weights (n, s), sums (width, width). */
EXPORT void EXPORTED(pairs)(const int32_t *columns, const real *weights, int64_t n_rows, int64_t s,
                            int64_t width, double scale, int64_t *sums)
{
    for (int64_t r = 0; r < n_rows; r++)
        EACH_PAIR(sums[cell] += units)
}

/* Add to a cell of a table with open addresses, where a cell of -1 is empty. */
INLINE void put(int64_t *table, uint64_t last, int64_t cell, int64_t units, int64_t *used)
{
    uint64_t at = ((uint64_t)cell * 0x9e3779b97f4a7c15u >> 20) & last;
    for (; table[2 * at] != cell; at = (at + 1) & last)
        if (table[2 * at] < 0) {
            table[2 * at] = cell;
            ++*used;
            break;
        }
    table[2 * at + 1] += units;
}

/* The same into a table of `places`, a power of two, as far as it may be filled. at: the row to begin
 * with, and cells in the table; the first row that is left comes back. */
EXPORT void EXPORTED(many_pairs)(const int32_t *columns, const real *weights, int64_t n_rows,
                                 int64_t s, int64_t width, double scale, int64_t *table,
                                 int64_t places, int64_t *at)
{
    int64_t r = at[0];
    for (; r < n_rows && at[1] <= places / 2 - s * (s + 1) / 2; r++)
        EACH_PAIR(put(table, (uint64_t)places - 1, cell, units, at + 1))
    at[0] = r;
}

/* Move what a table holds to a larger one. */
EXPORT void EXPORTED(move_pairs)(const int64_t *table, int64_t places, int64_t *larger,
                                 int64_t more_places)
{
    int64_t used = 0;
    for (const int64_t *cell = table; cell < table + 2 * places; cell += 2)
        if (*cell >= 0)
            put(larger, (uint64_t)more_places - 1, cell[0], cell[1], &used);
}
