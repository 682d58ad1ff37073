/* Rows side by side: a group of AT_ONCE rows, which fill VECTORS vectors, is written as columns. */

enum { AT_ONCE = VECTORS * LANES };

/* rows (AT_ONCE, m) → turned (m, AT_ONCE) */
static void turn(const real *rows, int64_t m, real *turned)
{
    for (int v = 0; v < VECTORS; v++, rows += LANES * m, turned += LANES) {
        if (m < PER_PIECE) {
            for (int64_t p = 0; p < m; p++)
                for (int r = 0; r < LANES; r++) turned[p * AT_ONCE + r] = rows[r * m + p];
            continue;
        }
        for (int64_t piece = 0; piece < m; piece += PER_PIECE) {
            int64_t p = smaller(piece, m - PER_PIECE); /* the last one may begin with what is done */
            vec x[PER_PIECE], y[PER_PIECE];
            UNROLLED for (int i = 0; i < PER_PIECE; i++)
                x[i] = from_rows(rows + i * m + p, PER_PIECE * m);
            /* Each round of zips halves the distance of numbers that belong side by side. */
#ifdef SINGLE
            y[0] = zip_low(x[0], x[2]), y[1] = zip_high(x[0], x[2]);
            y[2] = zip_low(x[1], x[3]), y[3] = zip_high(x[1], x[3]);
            x[0] = zip_low(y[0], y[2]), x[1] = zip_high(y[0], y[2]);
            x[2] = zip_low(y[1], y[3]), x[3] = zip_high(y[1], y[3]);
#else
            y[0] = zip_low(x[0], x[1]), y[1] = zip_high(x[0], x[1]);
            x[0] = y[0], x[1] = y[1];
#endif
            UNROLLED for (int i = 0; i < PER_PIECE; i++) store(turned + (p + i) * AT_ONCE, x[i]);
        }
    }
}
