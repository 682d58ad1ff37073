/* Vectors of one processor: a vec holds LANES numbers of the type real, in BYTES bytes.
 *
 * Every file is compiled once for float and once for double (-DSINGLE or not), and that for each
 * kind of processor (-DWAY=avx2, …). Sums are added in an order that does not depend on BYTES, each
 * term with one rounding (multiply_add), so that results have the same bits everywhere. Where an
 * order needs lanes, it is that of 64 bytes: LOGICAL numbers, in PIECES vectors. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JOINED_(name, way) name##_##way
#define JOINED(name, way) JOINED_(name, way)
#ifdef SINGLE
typedef float real;
typedef int32_t whole; /* as many bytes as real */
#define EXPORTED(name) JOINED(name##_f32, WAY)
#else
typedef double real;
typedef int64_t whole;
#define EXPORTED(name) JOINED(name##_f64, WAY)
#endif
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define INLINE static inline __attribute__((always_inline))
#define SIZES enum { LANES = BYTES / sizeof(real), LOGICAL = 64 / sizeof(real), PIECES = 64 / BYTES, \
                     PER_PIECE = 16 / sizeof(real) }; /* numbers in 16 bytes */
#define UNROLLED _Pragma("GCC unroll 64") /* so that arrays of vectors are registers */

#if defined(__AVX512F__)
#include <immintrin.h>
enum { BYTES = 64, REGISTERS = 32 };
SIZES
#ifdef SINGLE
typedef __m512 vec;
typedef __mmask16 mask;
#define OP(name) _mm512_##name##_ps
#define COMPARED _mm512_cmp_ps_mask
#define INSERTED(x, p, i) _mm512_insertf32x4(x, _mm_loadu_ps(p), i)
#define FIRST(p) _mm512_castps128_ps512(_mm_loadu_ps(p))
#define FOUR(p) _mm512_broadcast_f32x4(_mm_loadu_ps(p)) /* four numbers again and again */
/* The first or last two of each four numbers of x, and those of y. */
INLINE vec low_halves(vec x, vec y) { return OP(shuffle)(x, y, 0x44); }
INLINE vec high_halves(vec x, vec y) { return OP(shuffle)(x, y, 0xee); }
INLINE vec in_columns(vec x) /* the first of each four, the second of each four, … */
{
    return _mm512_permutexvar_ps(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), x);
}
#else
typedef __m512d vec;
typedef __mmask8 mask;
#define OP(name) _mm512_##name##_pd
#define COMPARED _mm512_cmp_pd_mask
#define INSERTED(x, p, i) _mm512_insertf64x2(x, _mm_loadu_pd(p), i)
#define FIRST(p) _mm512_castpd128_pd512(_mm_loadu_pd(p))
#define FOUR(p) _mm512_broadcast_f64x4(_mm256_loadu_pd(p))
INLINE vec low_halves(vec x, vec y)
{
    return _mm512_permutex2var_pd(x, _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), y);
}
INLINE vec high_halves(vec x, vec y)
{
    return _mm512_permutex2var_pd(x, _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), y);
}
INLINE vec in_columns(vec x)
{
    return _mm512_permutexvar_pd(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), x);
}
#endif
INLINE mask less(vec x, vec y) { return COMPARED(x, y, _CMP_LT_OQ); } /* false for NaN */
INLINE mask not_above(vec x, vec y) { return COMPARED(x, y, _CMP_NGT_UQ); } /* true for NaN */
INLINE int any(mask m) { return m != 0; }
INLINE vec choose(mask m, vec x, vec y) { return OP(mask_blend)(m, y, x); }
INLINE mask lanes_below(int64_t n) { return (mask)(n >= LANES ? ~0u : n > 0 ? (1u << n) - 1 : 0); }
INLINE mask lanes_from(int64_t n) { return (mask)~lanes_below(n); }
/* Zero where the mask is not set, and nothing is read or written there. */
INLINE vec load_where(mask m, const real *p) { return OP(maskz_loadu)(m, p); }
INLINE void store_where(mask m, real *p, vec x) { OP(mask_storeu)(p, m, x); }
INLINE vec and_where(mask m, vec x, vec y) { return OP(mask_and)(x, m, x, y); } /* or else x */
/* 16 bytes each from rows that are `stride` numbers apart. */
INLINE vec from_rows(const real *p, ptrdiff_t stride)
{
    vec x = FIRST(p);
    x = INSERTED(x, p + stride, 1);
    x = INSERTED(x, p + 2 * stride, 2);
    return INSERTED(x, p + 3 * stride, 3);
}

#elif defined(__AVX2__)
#include <immintrin.h>
enum { BYTES = 32, REGISTERS = 16 };
SIZES
#ifdef SINGLE
typedef __m256 vec;
#define OP(name) _mm256_##name##_ps
#define INSERTED(x, p, i) _mm256_insertf128_ps(x, _mm_loadu_ps(p), i)
#define FIRST(p) _mm256_castps128_ps256(_mm_loadu_ps(p))
#define FOUR(p) _mm256_broadcast_ps((const __m128 *)(p))
INLINE vec low_halves(vec x, vec y) { return OP(shuffle)(x, y, 0x44); }
INLINE vec high_halves(vec x, vec y) { return OP(shuffle)(x, y, 0xee); }
INLINE vec in_columns(vec x)
{
    return _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
#else
typedef __m256d vec;
#define OP(name) _mm256_##name##_pd
#define INSERTED(x, p, i) _mm256_insertf128_pd(x, _mm_loadu_pd(p), i)
#define FIRST(p) _mm256_castpd128_pd256(_mm_loadu_pd(p))
#define FOUR(p) _mm256_loadu_pd(p)
INLINE vec low_halves(vec x, vec y) { return _mm256_permute2f128_pd(x, y, 0x20); }
INLINE vec high_halves(vec x, vec y) { return _mm256_permute2f128_pd(x, y, 0x31); }
INLINE vec in_columns(vec x) { return x; }
#endif
typedef vec mask;
INLINE mask less(vec x, vec y) { return OP(cmp)(x, y, _CMP_LT_OQ); }
INLINE mask not_above(vec x, vec y) { return OP(cmp)(x, y, _CMP_NGT_UQ); }
INLINE int any(mask m) { return OP(movemask)(m) != 0; }
INLINE vec choose(mask m, vec x, vec y) { return OP(blendv)(y, x, m); }
INLINE int64_t lane(int64_t n) { return n < 0 ? 0 : n < LANES ? n : LANES; }
static const whole flags[] = {-1, -1, -1, -1, -1, -1, -1, -1, 0,  0,  0,  0,
                              0,  0,  0,  0,  -1, -1, -1, -1, -1, -1, -1, -1};
INLINE mask lanes_below(int64_t n) { return OP(loadu)((const real *)(flags + 8 - lane(n))); }
INLINE mask lanes_from(int64_t n) { return OP(loadu)((const real *)(flags + 16 - lane(n))); }
INLINE vec load_where(mask m, const real *p) { return OP(maskload)(p, (__m256i)m); }
INLINE void store_where(mask m, real *p, vec x) { OP(maskstore)(p, (__m256i)m, x); }
INLINE vec and_where(mask m, vec x, vec y) { return OP(andnot)(OP(andnot)(y, m), x); }
INLINE vec from_rows(const real *p, ptrdiff_t stride)
{
    return INSERTED(FIRST(p), p + stride, 1);
}

#elif defined(__aarch64__)
#include <arm_neon.h>
enum { BYTES = 32, REGISTERS = 16 }; /* two of its registers are a vec */
SIZES
#ifdef SINGLE
typedef float32x4_t half;
#define NEON(name) name##_f32
#else
typedef float64x2_t half;
#define NEON(name) name##_f64
#endif
typedef real vec __attribute__((vector_size(32)));
typedef whole mask __attribute__((vector_size(32)));
typedef union { vec both; half each[2]; mask bits; } halves;
INLINE vec both(half x, half y) { return ((halves){.each = {x, y}}).both; }
#define HALF(x, i) (((halves){x}).each[i])
#define EACH(op, ...) both(op(0, __VA_ARGS__), op(1, __VA_ARGS__))
INLINE vec multiply_add(vec x, vec y, vec z)
{
#define ADDED(i, x, y, z) NEON(vfmaq)(HALF(z, i), HALF(x, i), HALF(y, i))
    return EACH(ADDED, x, y, z);
}
INLINE vec repeat(real x) { return both(NEON(vdupq_n)(x), NEON(vdupq_n)(x)); }
INLINE vec load(const real *p) { return both(NEON(vld1q)(p), NEON(vld1q)(p + 16 / sizeof(real))); }
INLINE void store(real *p, vec x)
{
    NEON(vst1q)(p, HALF(x, 0));
    NEON(vst1q)(p + 16 / sizeof(real), HALF(x, 1));
}
INLINE vec root(vec x) { return both(NEON(vsqrtq)(HALF(x, 0)), NEON(vsqrtq)(HALF(x, 1))); }
INLINE mask lanes_below(int64_t n)
{
    mask m;
    for (int i = 0; i < LANES; i++) m[i] = -(i < n);
    return m;
}
INLINE mask lanes_from(int64_t n) { return ~lanes_below(n); }
INLINE vec load_where(mask m, const real *p)
{
    vec x = repeat(0);
    for (int i = 0; i < LANES; i++)
        if (m[i])
            x[i] = p[i];
    return x;
}
INLINE void store_where(mask m, real *p, vec x)
{
    for (int i = 0; i < LANES; i++)
        if (m[i])
            p[i] = x[i];
}
INLINE mask less(vec x, vec y) { return (mask)(x < y); }
INLINE mask not_above(vec x, vec y) { return ~(mask)(x > y); }
INLINE int any(mask m)
{
    typedef int64_t bits __attribute__((vector_size(32)));
    bits b = (bits)m;
    return (b[0] | b[1] | b[2] | b[3]) != 0;
}
INLINE vec choose(mask m, vec x, vec y) { return (vec)(((mask)x & m) | ((mask)y & ~m)); }
INLINE vec and_where(mask m, vec x, vec y) { return (vec)((mask)x & ((mask)y | ~m)); }
INLINE vec from_rows(const real *p, ptrdiff_t stride)
{
    return both(NEON(vld1q)(p), NEON(vld1q)(p + stride));
}
#define ZIPPED(which) both(NEON(which)(HALF(x, 0), HALF(y, 0)), NEON(which)(HALF(x, 1), HALF(y, 1)))
INLINE vec zip_low(vec x, vec y) { return ZIPPED(vzip1q); }
INLINE vec zip_high(vec x, vec y) { return ZIPPED(vzip2q); }
#ifdef SINGLE
#define FOUR(p) both(vld1q_f32(p), vld1q_f32(p))
#define COMBINED(part, i) vcombine_f32(part(HALF(x, i)), part(HALF(y, i)))
INLINE vec low_halves(vec x, vec y)
{
    return both(COMBINED(vget_low_f32, 0), COMBINED(vget_low_f32, 1));
}
INLINE vec high_halves(vec x, vec y)
{
    return both(COMBINED(vget_high_f32, 0), COMBINED(vget_high_f32, 1));
}
INLINE vec in_columns(vec x)
{
    return both(vzip1q_f32(HALF(x, 0), HALF(x, 1)), vzip2q_f32(HALF(x, 0), HALF(x, 1)));
}
#else
#define FOUR(p) load(p)
INLINE vec low_halves(vec x, vec y) { return both(HALF(x, 0), HALF(y, 0)); }
INLINE vec high_halves(vec x, vec y) { return both(HALF(x, 1), HALF(y, 1)); }
INLINE vec in_columns(vec x) { return x; }
#endif
#endif

#ifdef OP /* the two of Intel's */
INLINE vec multiply_add(vec x, vec y, vec z) { return OP(fmadd)(x, y, z); }
INLINE vec repeat(real x) { return OP(set1)(x); }
INLINE vec load(const real *p) { return OP(loadu)(p); }
INLINE void store(real *p, vec x) { OP(storeu)(p, x); }
INLINE vec root(vec x) { return OP(sqrt)(x); }
/* Numbers of x and y in turn, of the low or high halves of each 16 bytes. */
INLINE vec zip_low(vec x, vec y) { return OP(unpacklo)(x, y); }
INLINE vec zip_high(vec x, vec y) { return OP(unpackhi)(x, y); }
#endif


INLINE int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }

/* Sum of LOGICAL numbers, half added to half. */
INLINE real halved(const vec sums[PIECES])
{
    typedef real half_line __attribute__((vector_size(32)));
    typedef real quarter __attribute__((vector_size(16)));
    typedef union { vec all[PIECES]; half_line halves[2]; } line;
    typedef union { half_line all; quarter halves[2]; } half;
    line x;
    UNROLLED for (int i = 0; i < PIECES; i++) x.all[i] = sums[i];
    half y = {x.halves[0] + x.halves[1]};
    quarter z = y.halves[0] + y.halves[1];
#ifdef SINGLE
    return (z[0] + z[2]) + (z[1] + z[3]);
#else
    return z[0] + z[1];
#endif
}

INLINE void add_to_doubles(vec x, double *sums)
{
#ifdef SINGLE
    typedef float half_vec __attribute__((vector_size(BYTES / 2)));
    typedef double doubles __attribute__((vector_size(BYTES)));
    union { vec all; half_vec halves[2]; } parts = {x};
    UNROLLED for (int i = 0; i < 2; i++, sums += LANES / 2) {
        doubles before;
        memcpy(&before, sums, sizeof before);
        before += __builtin_convertvector(parts.halves[i], doubles);
        memcpy(sums, &before, sizeof before);
    }
#else
    store(sums, load(sums) + x);
#endif
}
