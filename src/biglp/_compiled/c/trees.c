/* Down the trees of a forest: adds what the leaves say that rows end in.
 *
 * A few dozen rows, a tile, are turned first, so that a feature of all of them fills some vectors.
 * Then each tree is asked about all tiles that fit the cache: all comparisons of its upper part
 * (packed_trees.py), and below it, where there is more, rows walk on. A step needs the result of the
 * one before, so that rows take turns; those that have arrived drop out. */

#include "vec.h"

#ifdef SINGLE

enum { VECTORS = 4 }; /* of a tile: what is left of its exits stays in registers */
#include "turn.h"
enum { TILE = AT_ONCE };
enum { STEPS = 2 }; /* of a row in a turn */
enum { CHILD_BITS = 20 };  /* of a node's left child; the rest is its feature */

typedef int32_t ints __attribute__((vector_size(BYTES)));

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Numbers as floats, and the next larger one where there is none: thresholds are floats, and a number
 * is above one of them exactly when it is so rounded up. */
INLINE void as_floats(const void *rows, int is_double, int64_t first, int64_t count, float *to)
{
    if (!is_double) {
        memcpy(to, (const float *)rows + first, (size_t)count * sizeof *to);
        return;
    }
    const double *from = (const double *)rows + first;
    for (int64_t i = 0; i < count; i++) {
        float near = (float)from[i];
        int32_t bits;
        memcpy(&bits, &near, sizeof bits);
        bits += ((double)near < from[i]) * (1 | bits >> 31);
        memcpy(to + i, &bits, sizeof bits);
    }
}

/* Turn a tile; places after the last row hold that row, and nobody asks what it gets. */
static void turn_tile(const void *rows, int is_double, int64_t n_rows, int64_t width, int64_t first,
                      float *lines, float *turned)
{
    if (first + TILE > n_rows)
        for (int64_t k = 0; k < TILE; k++)
            as_floats(rows, is_double, smaller(first + k, n_rows - 1) * width, width, lines + k * width);
    else if (is_double)
        as_floats(rows, 1, first * width, TILE * width, lines);
    else
        lines = (float *)rows + first * width;
    turn(lines, width, turned);
}

/* A row's exit is the lowest bit that is left of a word when all its comparisons are made; the last
 * word of a tree comes first, so that of two with a bit left the lower one counts. */
static void find_exits(const float *turned, const uint32_t *words, const uint32_t *comparisons,
                       uint32_t word, uint32_t end, uint32_t *exits)
{
    ints found[VECTORS] = {0};
    for (; word < end; word++) {
        vec left[VECTORS];
        UNROLLED for (int v = 0; v < VECTORS; v++) left[v] = repeat(from_bits(~0u));
        const uint32_t *last = comparisons + 3 * words[2 * word + 2];
        for (const uint32_t *c = comparisons + 3 * words[2 * word]; c < last; c += 3) {
            vec limit = repeat(from_bits(c[1])), mask = repeat(from_bits(c[2]));
            UNROLLED for (int v = 0; v < VECTORS; v++)
                left[v] = and_where(less(limit, load(turned + c[0] + v * LANES)), left[v], mask);
        }
        UNROLLED for (int v = 0; v < VECTORS; v++) {
            ints bits = (ints)left[v], lowest = bits & -bits, some = bits != 0;
            /* The exponent of a float tells which bit it is. */
            ints power = ((ints)__builtin_convertvector(lowest, vec) >> 23 & 0xff) - 127;
            found[v] = (found[v] & ~some) | ((power + (int32_t)words[2 * word + 1]) & some);
        }
    }
    memcpy(exits, found, sizeof found);
}

/* From exits to leaves; a leaf is its own child. */
static void walk_on(const float *turned, const uint32_t *nodes, uint32_t *places)
{
    uint8_t active[TILE];
    for (int k = 0; k < TILE; k++) active[k] = (uint8_t)k;
    for (size_t n_active = TILE, still; n_active; n_active = still) {
        still = 0;
        for (size_t i = 0; i < n_active; i++) {
            size_t k = active[i], node = places[k], before = node;
            const float *column = turned + k;
            UNROLLED for (int step = 0; step < STEPS; step++) {
                before = node;
                size_t packed = nodes[2 * node + 1];
                size_t above = column[(packed >> CHILD_BITS) * TILE] > from_bits(nodes[2 * node]);
                node = (packed & ((1u << CHILD_BITS) - 1)) + above;
            }
            places[k] = (uint32_t)node;
            active[still] = (uint8_t)k;
            still += node != before;
        }
    }
}

/* Columns are two, or a multiple of four. */
INLINE void add(const float *values, const uint32_t *leaves, int64_t columns, float *totals)
{
    typedef float two __attribute__((vector_size(8), aligned(4), may_alias));
    typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
    for (int k = 0; k < TILE; k++, totals += columns) {
        const float *said = values + leaves[k] * columns;
        if (columns == 2)
            *(two *)totals += *(const two *)said;
        else
            UNROLLED for (int64_t j = 0; j < columns; j += 4) *(four *)(totals + j) += *(const four *)(said + j);
    }
}

/* rows (n, width), float or double; trees, words, comparisons, nodes and values (nodes, columns) of
 * packed_trees.py; room for 1 + at_once tiles of rows; totals (n, columns) of whole tiles. */
EXPORT void EXPORTED(walk)(const void *rows, int64_t is_double, int64_t n_rows, int64_t width,
                           const uint32_t *trees, int64_t n_trees, const uint32_t *words,
                           const uint32_t *comparisons, const uint32_t *nodes, const float *values,
                           int64_t columns, int64_t at_once, float *room, float *totals)
{
    int64_t tiles = (n_rows + TILE - 1) / TILE;
    for (int64_t begin = 0; begin < tiles; begin += at_once) {
        int64_t end = smaller(begin + at_once, tiles);
        for (int64_t tile = begin; tile < end; tile++) {
            float *turned = room + (tile - begin + 1) * TILE * width;
            turn_tile(rows, (int)is_double, n_rows, width, tile * TILE, room, turned);
        }
        for (const uint32_t *tree = trees; tree < trees + 4 * n_trees; tree += 4) {
            const uint32_t *below = nodes + 2 * (size_t)tree[2];
            const float *said = values + tree[2] * columns;
            for (int64_t tile = begin; tile < end; tile++) {
                const float *turned = room + (tile - begin + 1) * TILE * width;
                float *sums = totals + tile * TILE * columns;
                uint32_t places[TILE];
                find_exits(turned, words, comparisons, tree[0], tree[1], places);
                if (tree[3])
                    walk_on(turned, below, places);
                switch (columns) {
#define COLUMNS(n) case n: add(said, places, n, sums); break;
                    COLUMNS(2) COLUMNS(4) COLUMNS(8) COLUMNS(12) COLUMNS(16)
                default: add(said, places, columns, sums);
                }
            }
        }
    }
}

#endif
