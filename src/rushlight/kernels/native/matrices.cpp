// Products of matrices of float32 and float64.
//
// The right factor is packed, a block that stays in the second-level cache at a time, into panels of columns; rows of the left
// one are read where they lie, and packed a tile at a time where memory runs along its columns (after Goto and van de Geijn,
// "Anatomy of High-Performance Matrix Multiplication", 2008).
// A sum is made in the same order whatever the number of threads.
#include "transposes.h"

namespace rl {
namespace {

constexpr long kPanels = 10;                                            // of a block, at most
template <class T> constexpr long kBlock = kPanels * 1536 / sizeof(T);  // steps times panels of a block: 737 KB with AVX-512
template <class T> constexpr long kNarrow = 3 * kWide<T>;               // columns for which another pass over the left factor pays
constexpr long kTall = 8 * kRows;                                       // rows for which packing the right factor again pays
constexpr long kFew = 2 * kRows;                                        // rows up to which it never does
constexpr long kSome = 12 * kRows, kNear = 4096;                        // up to which it does not if its own are fewer bytes apart
constexpr long kShared = 1L << 19;                                      // multiplications that are worth a thread

template <class T> struct Product {
    Matrix<const T> a, b;  // (M, K), (K, N)
    const T *bias;         // of the columns of out, or nullptr
    T *out;                // (M, N), or (N, M) if across
    long pitch, deep;      // steps at a time
    bool across;           // so that the factors changed places

    // Columns [first, first + some) of the right factor, for some steps, as (steps, kWide), with zeros at the end.
    void pack_panel(long k, long steps, long first, long some, T *to) const {
        const T *from = b.at(k, first);
        if (some % kLanes<T>) std::fill(to, to + steps * kWide<T>, T(0));
        if (b.turned) return pack_turned(from, b.pitch, steps, some, to);
        if (some == kWide<T>) return pack_lying<kWide<T>>(from, steps, some, to);
        pack_lying<0>(from, steps, some, to);
    }

    // kCount: how many columns, where the compiler shall know.
    template <int kCount> void pack_lying(const T *from, long steps, long some, T *to) const {
        for (long s = 0; s < steps; ++s) std::copy_n(from + s * b.pitch, kCount ? kCount : some, to + s * kWide<T>);
    }

    // kRows numbers a step; rows past `count` stand for the last.
    void pack_rows(long k, long steps, long first, long count, T *to) const {
        const T *from = a.at(first, k);
        if (count >= kRows)
            for (long s = 0; s < steps; ++s) std::copy_n(from + s * a.pitch, kRows, to + s * kRows);
        else
            for (long s = 0; s < steps; ++s)
                for (long i = 0; i < kRows; ++i) to[s * kRows + i] = from[s * a.pitch + std::min(i, count - 1)];
    }

    // Some rows and columns of out.
    struct Place {
        long row, rows, column, columns;
    };

    template <class F> static void each_panel(Place at, F act) {
        for (long c = 0; c < at.columns; c += kWide<T>)
            act(Place{at.row, at.rows, at.column + c, std::min<long>(kWide<T>, at.columns - c)});
    }

    template <class F> static void each_strip(Place at, F act) {
        for (long i = 0; i < at.rows; i += kRows) act(Place{at.row + i, std::min<long>(kRows, at.rows - i), at.column, at.columns});
    }

    // Of a tile that is not written as it is made: what counts of it, into its place, along out's rows.
    void put(const T *edge, Place at, bool add) const {
        if (across) return transpose(edge, kWide<T>, at.rows, at.columns, out + at.column * pitch + at.row, pitch, add);
        T *to = out + at.row * pitch + at.column;
        for (long i = 0; i < at.rows; ++i, to += pitch, edge += kWide<T>)
            for (long j = 0; j < at.columns; ++j) to[j] = add ? to[j] + edge[j] : edge[j];
    }

    template <Reads kReads>
    void tile_of(const T *const *left, const T *right, long steps, Place at, bool add, long apart) const {
        if (!across && at.rows == kRows && at.columns % kLanes<T> == 0)
            return product<T, kReads>(left, right, steps, at.columns, out + at.row * pitch + at.column, pitch, add, apart);
        T edge[kRows * kWide<T>];
        product<T, kReads>(left, right, steps, at.columns, edge, kWide<T>, false, apart);
        put(edge, at, add);
    }

    template <Reads kReads> void strip(const T *const *left, const T *right, long steps, Place at, bool add) const {
        each_panel(at, [&](Place panel) {
            tile_of<kReads>(left, right, steps, panel, add, panel.column == at.column ? kRows * a.pitch : 0);
            right += kWide<T> * steps;
        });
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
        each_strip(block, [&](Place at) {
            if (packed) {
                pack_rows(k, steps, at.row, at.rows, packed);
                strip<kByPanels>(&packed, right, steps, at, k > 0);
            } else {
                strip<kByRows>(Rows<T>(a.at(at.row, k), a.pitch, 0, at.rows).at, right, steps, at, k > 0);
            }
            if (bias && k + steps == a.columns) add_bias(at);
        });
    }

    void run(Place block) const {
        T *right = scratch<T, 0>(deep * ceil_div(block.columns, kWide<T>) * kWide<T>);
        T *packed = a.turned ? scratch<T, 1>(deep * kRows) : nullptr;
        for (long k = 0; k < a.columns; k += deep) {
            const long steps = std::min(deep, a.columns - k);
            T *to = right;
            each_panel(block, [&](Place at) {
                pack_panel(k, steps, at.column, at.columns, to);
                to += kWide<T> * steps;
            });
            add_steps(block, k, steps, right, packed);
        }
    }

    // For few rows to pack the right factor does not pay: its rows are read where they lie, all but those of a last narrow panel.
    void run_few(Place block) const {
        T *last = scratch<T, 0>(deep * kWide<T>);
        for (long k = 0; k < a.columns; k += deep) {
            const long steps = std::min(deep, a.columns - k);
            each_panel(block, [&](Place panel) {
                if (panel.columns % kLanes<T> == 0) return add_in_place(panel, k, steps);
                pack_panel(k, steps, panel.column, panel.columns, last);
                add_steps(panel, k, steps, last, nullptr);
            });
        }
    }

    void add_in_place(Place panel, long k, long steps) const {
        each_strip(panel, [&](Place at) {
            tile_of<kInPlace>(Rows<T>(a.at(at.row, k), a.pitch, 0, at.rows).at, b.at(k, at.column), steps, at, k > 0, b.pitch);
        });
        if (bias && k + steps == a.columns) add_bias(panel);
    }
};

// How a product is cut.  For several threads by columns first, for then nothing is packed twice; along the sum always in the same
// way, so that results do not depend on how many there are.
template <class T> struct Cut {
    long deep;                     // steps of a block
    long wide, broad, tall, high;  // columns of a block, blocks of columns, rows of a block, blocks of rows

    Cut(long rows, long columns, long steps, long batch) {
        const long pieces = std::min(2L * threads(), 2 * rows * columns * steps * batch / kShared);
        const long wanted = threads() > 1 && pieces >= 3 ? ceil_div(pieces, batch) : 1;
        const long fewest = ceil_div(columns, kPanels * kWide<T>);
        deep = std::min(steps, kBlock<T> / ceil_div(ceil_div(columns, fewest), kWide<T>));
        const bool few = columns < 2 * kNarrow<T> && rows < 2 * kTall;  // nothing to cut: then rather narrow columns than one thread
        broad = std::max(fewest, std::min(wanted, columns / (few ? 2 * kWide<T> : kNarrow<T>)));
        const long unit = columns < 2 * kNarrow<T> ? kLanes<T> : kWide<T>;  // of a few panels one more is a large part
        wide = ceil_div(ceil_div(columns, broad), unit) * unit;
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
    const bool few = !a.turned && !b.turned && (a.rows <= kFew || (a.rows <= kSome && b.pitch * (long)sizeof(T) < kNear));
    call.run([&] {
        const long work = cut.tall * cut.wide * a.columns;
        parallel_for(batch * cut.blocks(), 1 + kShared / (work + 1), [&](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                const long one = i / cut.blocks();
                const Product<T> product{a.one(one), b.one(one), bias, out + one * size, pitch, cut.deep, across};
                const auto block = cut.block(i % cut.blocks(), a.rows, b.columns);
                few ? product.run_few(block) : product.run(block);
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
