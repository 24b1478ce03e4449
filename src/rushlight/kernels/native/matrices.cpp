// Products of matrices of float32 and float64.
//
// The right factor is packed, a block that stays in the second-level cache at a time, into panels of columns; rows of the left
// one are read where they lie, and packed a tile at a time where memory runs along its columns (after Goto and van de Geijn,
// "Anatomy of High-Performance Matrix Multiplication", 2008).  A sum is made in the same order whatever the number of threads
// and wherever its row lies.
#include "gemm.h"

namespace rl {
namespace {

template <class T> constexpr long kDeep = 1536 / sizeof(T);      // steps of a block
template <class T> constexpr long kBroad = 10 * kWide<T>;        // columns of a block
template <class T> constexpr long kNarrow = 3 * kWide<T>;        // columns for which packing the left factor's tiles pays
constexpr long kShared = 1L << 21;                               // multiplications from which on threads share a product
constexpr long kTall = 8 * kRows;                                // rows for which packing the right factor again pays

template <class T> struct Block {
    Matrix<const T> a, b;  // (M, K), (K, N)
    const T *bias;         // (N), or nullptr
    T *out;                // (M, N)
    long pitch;            // N

    // Columns [first, first + width) of the right factor, for some steps: (panels, steps, kWide), with zeros at the end.
    void pack_right(long k, long steps, long first, long width, T *to) const {
        for (long c = 0; c < width; c += kWide<T>, to += steps * kWide<T>) {
            const long some = std::min<long>(kWide<T>, width - c);
            const T *from = b.at(k, first + c);
            if (some < kWide<T>) std::fill(to, to + steps * kWide<T>, T(0));
            if (!b.turned)
                for (long s = 0; s < steps; ++s) std::copy_n(from + s * b.pitch, some, to + s * kWide<T>);
            else
                for (long s = 0; s < steps; s += 64)  // as many as stay in the first-level cache
                    for (long j = 0; j < some; ++j)
                        for (long t = s; t < std::min(s + 64, steps); ++t) to[t * kWide<T> + j] = from[j * b.pitch + t];
        }
    }

    // kRows numbers a step; rows past `count` stand for the last.
    void pack_left(long k, long steps, long first, long count, T *to) const {
        const T *from = a.at(first, k);
        for (long s = 0; s < steps; ++s, from += a.pitch, to += kRows) {
            if (count >= kRows) std::copy_n(from, kRows, to);
            else for (long i = 0; i < kRows; ++i) to[i] = from[std::min(i, count - 1)];
        }
    }

    // A tile of out: as many rows and columns as count.
    template <bool kPacked>
    void tile_of(const T *const *left, const T *panel, long steps, long rows, long columns, T *to, bool add) const {
        if (rows >= kRows && columns % kLanes<T> == 0) return product<T, kPacked>(left, panel, steps, columns, to, pitch, add);
        T edge[kRows * kWide<T>];
        product<T, kPacked>(left, panel, steps, columns, edge, kWide<T>, false);
        for (long i = 0; i < std::min<long>(rows, kRows); ++i)
            for (long j = 0; j < columns; ++j) {
                T *at = to + i * pitch + j;
                *at = add ? *at + edge[i * kWide<T> + j] : edge[i * kWide<T> + j];
            }
    }

    template <bool kPacked>
    void strip(const T *const *left, const T *right, long steps, long rows, long width, T *to, bool add) const {
        for (long c = 0; c < width; c += kWide<T>)
            tile_of<kPacked>(left, right + c * steps, steps, rows, std::min<long>(kWide<T>, width - c), to + c, add);
    }

    // Rows [top, top + count) of columns [first, first + width): of one block.
    void run(long top, long count, long first, long width, long steps_in_all) const {
        T *right = scratch<T, 0>(kDeep<T> * ceil_div(width, kWide<T>) * kWide<T>);
        T *packed = a.turned ? scratch<T, 1>(kDeep<T> * kRows) : nullptr;
        for (long k = 0; k < steps_in_all; k += kDeep<T>) {
            const long steps = std::min(kDeep<T>, steps_in_all - k);
            pack_right(k, steps, first, width, right);
            for (long i = top; i < top + count; i += kRows) {
                const long rows = std::min<long>(kRows, top + count - i);
                T *to = out + i * pitch + first;
                if (packed) {
                    pack_left(k, steps, i, rows, packed);
                    strip<true>(&packed, right, steps, rows, width, to, k > 0);
                } else {
                    const Rows<T> left(a.at(i, k), a.pitch, 0, rows);
                    strip<false>(left.at, right, steps, rows, width, to, k > 0);
                }
                if (bias && k + steps == steps_in_all) add_bias(to, rows, first, width);
            }
        }
    }

    void add_bias(T *to, long rows, long first, long width) const {
        for (long i = 0; i < rows; ++i)
            for (long j = 0; j < width; ++j) to[i * pitch + j] += bias[first + j];
    }
};

// How a product is cut for several threads: by columns first, for then nothing is packed twice.
template <class T> struct Cut {
    long wide, broad, tall, high;  // columns of a block, blocks of columns, rows of a block, blocks of rows

    Cut(long rows, long columns, long steps, long batch) {
        const long wanted = threads() > 1 && rows * columns * steps >= kShared ? ceil_div(2 * threads(), batch) : 1;
        broad = std::max(ceil_div(columns, kBroad<T>), std::min(wanted, columns / kNarrow<T>));
        wide = ceil_div(ceil_div(columns, broad), kWide<T>) * kWide<T>;
        broad = ceil_div(columns, wide);
        high = std::max(1L, std::min(ceil_div(wanted, broad), rows / kTall));
        tall = ceil_div(ceil_div(rows, high), kRows) * kRows;
        high = ceil_div(rows, tall);
    }
};

// a (M, K), b (K, N), row (N) or None, out (M, N); of a batch (B, M, K), (B, K, N), (B, M, N).  Whether the factors' strides
// are such that this was done.
template <class T> long multiply(const char *name, Array *a_, Array *b_, Array *row_, Array *out_) {
    Call call(name);
    const auto a = call.matrix<T>("left", a_), b = call.matrix<T>("right", b_);
    if (!a.data || !b.data) return 0;
    const long rows = a.rows, steps = a.columns, columns = b.columns, batch = a.batch;
    const T *bias = call.maybe_in<T>("row", row_, columns);
    T *out = call.out<T>("out", out_, batch, rows, columns);
    call.expect(b.rows == steps && b.batch == batch, "sizes of a product");
    const Cut<T> cut(rows, columns, steps, batch);
    call.run([&] {
        parallel_for(batch * cut.broad * cut.high, 1 + kShared / (cut.tall * cut.wide * steps + 1), [&](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                const long one = i / (cut.broad * cut.high), left = i / cut.high % cut.broad * cut.wide, top = i % cut.high * cut.tall;
                const Block<T> block{a.one(one), b.one(one), bias, out + one * rows * columns, columns};
                block.run(top, std::min(cut.tall, rows - top), left, std::min(cut.wide, columns - left), steps);
            }
        });
    });
    return 1;
}

}  // namespace
}  // namespace rl

#define RL_MULTIPLY(T, suffix)                                                                       \
    RL_EXPORT long rl_multiply_##suffix(Array *a, Array *b, Array *row, Array *out) {                \
        return rl::multiply<T>("multiply", a, b, row, out);                                          \
    }
RL_BOTH(RL_MULTIPLY)
