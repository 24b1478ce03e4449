// Products of matrices of float32 and float64.
//
// The right factor is packed, a block that stays in the second-level cache at a time, into panels of columns; rows of the left
// one are read where they lie, and packed a tile at a time where memory runs along its columns (after Goto and van de Geijn,
// "Anatomy of High-Performance Matrix Multiplication", 2008).
// A sum is made in the same order whatever the number of threads.
#include "gemm.h"
#if defined(__AVX512F__)
#include <immintrin.h>  // to transpose in registers
#endif

namespace rl {
namespace {

constexpr long kPanels = 10;                                            // of a block, at most
template <class T> constexpr long kBlock = kPanels * 1536 / sizeof(T);  // steps times panels of a block: 737 KB with AVX-512
template <class T> constexpr long kNarrow = 3 * kWide<T>;               // columns for which another pass over the left factor pays
constexpr long kTall = 8 * kRows;                                       // rows for which packing the right factor again pays
constexpr long kShared = 1L << 21;                                      // multiplications from which on threads share a product

// to (16, 8) = or += from (8, 16) transposed, rows a pitch apart; where there is nothing for it, false.
template <class T> RL_INLINE bool transpose_block(const T *, long, T *, long, bool) { return false; }
#if defined(__AVX512F__)
RL_INLINE bool transpose_block(const float *from, long pitch, float *to, long to_pitch, bool add) {
    __m512 half[2][4];  // of four rows each: in every 128 bits of half[h][j] a column of 4 x 4 numbers
    for (int h = 0; h < 2; ++h) {
        __m512 row[4];
        for (int i = 0; i < 4; ++i) row[i] = _mm512_loadu_ps(from + (4 * h + i) * pitch);
        const __m512d low0 = _mm512_castps_pd(_mm512_unpacklo_ps(row[0], row[1])), high0 = _mm512_castps_pd(_mm512_unpackhi_ps(row[0], row[1]));
        const __m512d low1 = _mm512_castps_pd(_mm512_unpacklo_ps(row[2], row[3])), high1 = _mm512_castps_pd(_mm512_unpackhi_ps(row[2], row[3]));
        half[h][0] = _mm512_castpd_ps(_mm512_unpacklo_pd(low0, low1));
        half[h][1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low0, low1));
        half[h][2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high0, high1));
        half[h][3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high0, high1));
    }
    const auto put = [&](auto lane) {
        constexpr int kLane = decltype(lane)::value;
        for (int j = 0; j < 4; ++j)
            for (int h = 0; h < 2; ++h) {
                float *at = to + (4 * kLane + j) * to_pitch + 4 * h;
                const __m128 four = _mm512_extractf32x4_ps(half[h][j], kLane);
                _mm_storeu_ps(at, add ? _mm_add_ps(_mm_loadu_ps(at), four) : four);
            }
    };
    put(std::integral_constant<int, 0>()), put(std::integral_constant<int, 1>());
    put(std::integral_constant<int, 2>()), put(std::integral_constant<int, 3>());
    return true;
}
#endif

// to (columns, rows) = or += from (rows, columns) transposed.
template <class T> static void transpose(const T *from, long pitch, long rows, long columns, T *to, long to_pitch, bool add) {
    long i = 0;
    for (; i + 8 <= rows; i += 8) {
        long j = 0;
        for (; j + 16 <= columns && transpose_block(from + i * pitch + j, pitch, to + j * to_pitch + i, to_pitch, add); j += 16) {}
        for (; j < columns; ++j)
            for (long r = i; r < i + 8; ++r) to[j * to_pitch + r] = add ? to[j * to_pitch + r] + from[r * pitch + j] : from[r * pitch + j];
    }
    for (; i < rows; ++i)
        for (long j = 0; j < columns; ++j) to[j * to_pitch + i] = add ? to[j * to_pitch + i] + from[i * pitch + j] : from[i * pitch + j];
}

template <class T> struct Product {
    Matrix<const T> a, b;  // (M, K), (K, N)
    const T *bias;         // of the columns of out, or nullptr
    T *out;                // (M, N), or (N, M) if across
    long pitch, deep;      // steps at a time
    bool across;           // so that the factors changed places

    // Columns [first, first + some) of the right factor, for some steps, as (steps, kWide), with zeros at the end.
    void pack_panel(long k, long steps, long first, long some, T *to) const {
        const T *from = b.at(k, first);
        if (some < kWide<T>) std::fill(to, to + steps * kWide<T>, T(0));
        if (!b.turned)
            for (long s = 0; s < steps; ++s) std::copy_n(from + s * b.pitch, some, to + s * kWide<T>);
        else
            for (long s = 0; s < steps; s += 64)  // as many as stay in the first-level cache
                transpose(from + s, b.pitch, some, std::min(64L, steps - s), to + s * kWide<T>, kWide<T>, false);
    }

    // kRows numbers a step; rows past `count` stand for the last.
    void pack_rows(long k, long steps, long first, long count, T *to) const {
        const T *from = a.at(first, k);
        for (long s = 0; s < steps; ++s, from += a.pitch, to += kRows) {
            if (count >= kRows) std::copy_n(from, kRows, to);
            else
                for (long i = 0; i < kRows; ++i) to[i] = from[std::min(i, count - 1)];
        }
    }

    // Some rows and columns of out.
    struct Place {
        long row, rows, column, columns;
    };

    // Of a tile that is not written as it is made: what counts of it, into its place, along out's rows.
    void put(const T *edge, Place at, bool add) const {
        if (across) return transpose(edge, kWide<T>, at.rows, at.columns, out + at.column * pitch + at.row, pitch, add);
        T *to = out + at.row * pitch + at.column;
        for (long i = 0; i < at.rows; ++i, to += pitch, edge += kWide<T>)
            for (long j = 0; j < at.columns; ++j) to[j] = add ? to[j] + edge[j] : edge[j];
    }

    template <bool kPacked> void tile_of(const T *const *left, const T *right, long steps, Place at, bool add, long ahead) const {
        if (!across && at.rows == kRows && at.columns % kLanes<T> == 0)
            return product<T, kPacked>(left, right, steps, at.columns, out + at.row * pitch + at.column, pitch, add, ahead);
        T edge[kRows * kWide<T>];
        product<T, kPacked>(left, right, steps, at.columns, edge, kWide<T>, false, ahead);
        put(edge, at, add);
    }

    template <bool kPacked> void strip(const T *const *left, const T *right, long steps, Place at, bool add) const {
        for (long c = 0; c < at.columns; c += kWide<T>)
            tile_of<kPacked>(left, right + c * steps, steps, {at.row, at.rows, at.column + c, std::min<long>(kWide<T>, at.columns - c)}, add,
                             c == 0 ? kRows * a.pitch : 0);
    }

    void add_bias(Place at) const {
        for (long i = 0; i < (across ? at.columns : at.rows); ++i) {
            T *to = across ? out + (at.column + i) * pitch + at.row : out + (at.row + i) * pitch + at.column;
            const T *more = bias + (across ? at.row : at.column);
            for (long j = 0; j < (across ? at.rows : at.columns); ++j) to[j] += more[j];
        }
    }

    // Some steps of a block.
    void add_steps(Place block, long k, long steps, const T *right, T *packed) const {
        for (long i = 0; i < block.rows; i += kRows) {
            const Place at{block.row + i, std::min<long>(kRows, block.rows - i), block.column, block.columns};
            if (packed) {
                pack_rows(k, steps, at.row, at.rows, packed);
                strip<true>(&packed, right, steps, at, k > 0);
            } else {
                const Rows<T> left(a.at(at.row, k), a.pitch, 0, at.rows);
                strip<false>(left.at, right, steps, at, k > 0);
            }
            if (bias && k + steps == a.columns) add_bias(at);
        }
    }

    void run(Place block) const {
        T *right = scratch<T, 0>(deep * ceil_div(block.columns, kWide<T>) * kWide<T>);
        T *packed = a.turned ? scratch<T, 1>(deep * kRows) : nullptr;
        for (long k = 0; k < a.columns; k += deep) {
            const long steps = std::min(deep, a.columns - k);
            for (long c = 0; c < block.columns; c += kWide<T>)
                pack_panel(k, steps, block.column + c, std::min<long>(kWide<T>, block.columns - c), right + c * steps);
            add_steps(block, k, steps, right, packed);
        }
    }
};

// How a product is cut.  For several threads by columns first, for then nothing is packed twice; along the sum always in the same
// way, so that results do not depend on how many there are.
template <class T> struct Cut {
    long deep;                     // steps of a block
    long wide, broad, tall, high;  // columns of a block, blocks of columns, rows of a block, blocks of rows

    Cut(long rows, long columns, long steps, long batch) {
        const long wanted = threads() > 1 && rows * columns * steps >= kShared ? ceil_div(2 * threads(), batch) : 1;
        const long fewest = ceil_div(columns, kPanels * kWide<T>);
        deep = std::min(steps, kBlock<T> / ceil_div(ceil_div(columns, fewest), kWide<T>));
        const bool few = columns < 2 * kNarrow<T> && rows < 2 * kTall;  // nothing to cut: then rather narrow columns than one thread
        broad = std::max(fewest, std::min(wanted, columns / (few ? 2 * kWide<T> : kNarrow<T>)));
        wide = ceil_div(ceil_div(columns, broad), kWide<T>) * kWide<T>;
        broad = ceil_div(columns, wide);
        high = std::max(1L, std::min(ceil_div(wanted, broad), rows / kTall));
        tall = ceil_div(ceil_div(rows, high), kRows) * kRows;
        high = ceil_div(rows, tall);
    }

    long blocks() const { return broad * high; }

    typename Product<T>::Place block(long i, long rows, long columns) const {
        const long top = i % high * tall, left = i / high * wide;
        return {top, std::min(tall, rows - top), left, std::min(wide, columns - left)};
    }
};

template <class T> Matrix<const T> transposed(Matrix<const T> x) {
    std::swap(x.rows, x.columns);
    x.turned = !x.turned;
    return x;
}

// Tiles of fewer rows read more for each product: there BLAS is up to a fifth faster.
constexpr bool kPays = kBytes >= 64;

// a (M, K), b (K, N), row (N) or None, out (M, N); of a batch (B, M, K), (B, K, N), (B, M, N).  Whether the processor and the
// factors' strides are such that this was done.
template <class T> long multiply_all(const char *name, Array *a_, Array *b_, Array *row_, Array *out_) {
    Call call(name);
    auto a = call.matrix<T>("left", a_), b = call.matrix<T>("right", b_);
    if (!kPays || !a.data || !b.data) return 0;
    const long batch = a.batch, pitch = b.columns, size = a.rows * b.columns;
    const T *bias = call.maybe_in<T>("row", row_, pitch);
    T *out = call.out<T>("out", out_, batch, a.rows, b.columns);
    call.expect(b.rows == a.columns && b.batch == batch, "sizes of a product");
    // What is packed is transposed where memory runs along the sum: rather the smaller factor.
    const bool across = b.turned && (a.turned || (a.rows <= kNarrow<T> && 2 * a.rows <= b.columns));
    if (across) {
        std::swap(a, b);
        a = transposed(a), b = transposed(b);
    }
    const Cut<T> cut(a.rows, b.columns, a.columns, batch);
    call.run([&] {
        const long work = cut.tall * cut.wide * a.columns;
        parallel_for(batch * cut.blocks(), 1 + kShared / (work + 1), [&](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                const long one = i / cut.blocks();
                const Product<T> product{a.one(one), b.one(one), bias, out + one * size, pitch, cut.deep, across};
                product.run(cut.block(i % cut.blocks(), a.rows, b.columns));
            }
        });
    });
    return 1;
}

}  // namespace
}  // namespace rl

#define RL_MULTIPLY(T, suffix)                                                                       \
    RL_EXPORT long rl_multiply_##suffix(Array *a, Array *b, Array *row, Array *out) {                \
        return rl::multiply_all<T>("multiply", a, b, row, out);                                          \
    }                                                                                                \
    RL_EXPORT long rl_multiply_pays_##suffix() { return rl::kPays; }
RL_BOTH(RL_MULTIPLY)
