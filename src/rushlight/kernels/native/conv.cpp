// Convolution, its input gradient and its weight gradient as products of blocks that are packed on the way.
//
// The columns of the product are the outputs of all images in one row, so that small images fill the vectors
// too.  Only strips of a few hundred columns are ever unfolded, in buffers that each thread keeps.  How a sum is
// split depends on shapes alone, never on the threads.
#include <algorithm>

#include "memory.h"
#include "squares.h"
#include "winograd.h"

namespace rl {
namespace {

constexpr long kDepth = 640;     // steps of a sum that are packed at once
constexpr long kBlockRows = 288; // rows of a block that stays in the second-level cache

// Parts of equal size, at most `most`.
long even(long total, long most) { return ceil_div(total, ceil_div(total, most)); }

// Rows for one task: all of them if there are enough tasks anyway.
long rows_per_task(long rows, long others, long most) {
    long wanted = 3L * threads(), parts = std::max(ceil_div(rows, most), others >= wanted ? 1 : ceil_div(wanted, others));
    return std::max((long)kRows, ceil_div(ceil_div(rows, parts), kRows) * kRows);
}

// Puts a tile's rows at y + column place, a row every `pitch`.
template <class T>
void put(const T *out, long rows, long columns, const int32_t *place, bool side_by_side, long pitch, T *y, bool add) {
    for (long i = 0; i < rows; ++i, out += kWide<T>, y += pitch) {
        if (side_by_side && add)
            for (long j = 0; j < columns; ++j) y[place[0] + j] += out[j];
        else if (side_by_side) std::memcpy(y + place[0], out, columns * sizeof(T));
        else if (add)
            for (long j = 0; j < columns; ++j) y[place[j]] += out[j];
        else
            for (long j = 0; j < columns; ++j) y[place[j]] = out[j];
    }
}

template <class T> struct Forward {
    static constexpr long kStrip = 4 * kWide<T>;
    const Windows &s;
    const T *x, *w;
    T *y;
    long rows = s.O / s.G, channels = s.C / s.G, depth = channels * s.taps();

    void strip(long group, long first, long row_begin, long row_end) const {
        long columns = std::min(kStrip, s.N * s.length() - first);
        Places<T> from, to;
        from.find(s, first, columns, false, s.C, scratch<int32_t, 0>(Places<T>::room(s, kStrip)));
        to.find(s, first, columns, true, s.O, scratch<int32_t, 1>(Places<T>::room(s, kStrip)));
        const T *image = x + (from.image * s.C + group * channels) * s.area();
        long step = even(depth, kDepth);
        T *packed = scratch<T, 2>(step * kStrip);
        for (long k = 0; k < depth; k += step) {
            long steps = std::min(step, depth - k);
            pack(from, image, k, steps, packed);
            for (long i = row_begin; i < row_end; i += kRows)
                row_tiles(to, group, i, row_end, packed, k, steps);
        }
    }

    void pack(const Places<T> &from, const T *image, long k, long steps, T *packed) const {
        for (long q = 0; q < from.groups; q += kVectors, packed += steps * kWide<T>) {
            long end = std::min(q + kVectors, from.groups), tap = k % s.taps();
            const T *channel = image + k / s.taps() * s.area();
            for (long i = 0; i < steps; ++i) {
                from.load(channel, tap, q, end, packed + i * kWide<T>);
                if (++tap == s.taps()) tap = 0, channel += s.area();
            }
        }
    }

    void row_tiles(const Places<T> &to, long group, long i, long row_end, const T *packed, long k, long steps) const {
        alignas(64) T out[kRows * kWide<T>];
        long o = group * rows + i, L = s.length();
        Rows<T> a(w + group * rows * depth + k, depth, i, row_end);
        for (long j = 0; j < to.count; j += kWide<T>, packed += steps * kWide<T>) {
            long columns = std::min((long)kWide<T>, to.count - j);
            bool side_by_side = to.at[j + columns - 1] - to.at[j] == columns - 1;
            T *rows_at = y + (to.image * s.O + o) * L;
            if (side_by_side && row_end - i >= kRows && columns % kLanes<T> == 0) {
                product<T, kByRows>(a.at, packed, steps, columns, rows_at + to.at[j], L, k > 0);
                continue;
            }
            product<T, kByRows>(a.at, packed, steps, columns, out, kWide<T>, false);
            put(out, std::min((long)kRows, row_end - i), columns, to.at + j, side_by_side, L, rows_at, k > 0);
        }
    }

    void run() const {
        if constexpr (sizeof(T) == sizeof(float))
            if (conv_by_points(s, x, w, y)) return;
        long strips = ceil_div(s.N * s.length(), kStrip), block = rows_per_task(rows, strips * s.G, rows);
        long blocks = ceil_div(rows, block);
        parallel_for(strips * s.G * blocks, 1, [=, this_ = *this](long begin, long end) {
            for (long t = begin; t < end; ++t) {
                long i = t % blocks * block, strip = t / blocks % strips;
                this_.strip(t / blocks / strips, strip * kStrip, i, std::min(rows_of(this_), i + block));
            }
        });
    }
    static long rows_of(const Forward &f) { return f.rows; }
};

// x += the fold of w^T g, a block of channels of a few images at a time.
template <class T> struct InputGradient {
    static constexpr long kStrip = 4 * kWide<T>;
    const Windows &s;
    const T *g, *w;
    T *x;
    long rows = s.O / s.G, channels = s.C / s.G, depth = channels * s.taps();
    long block = std::min(channels, std::max(1L, 192 / (long)s.taps()));

    // Channels [c, c + some) of a group, images [n, end).
    void images(long group, long c, long n, long end) const {
        long some = std::min(block, channels - c), L = s.length();
        for (long i = n; i < end; ++i)
            std::memset(x + (i * s.C + group * channels + c) * s.area(), 0, some * s.area() * sizeof(T));
        for (long first = n * L; first < end * L; first += kStrip)
            strip(group, c, some, first, std::min(kStrip, end * L - first));
    }

    void strip(long group, long c, long some, long first, long columns) const {
        Places<T> to, from;
        to.find(s, first, columns, false, s.C, scratch<int32_t, 0>(Places<T>::room(s, kStrip)));
        from.find(s, first, columns, true, s.O, scratch<int32_t, 1>(Places<T>::room(s, kStrip)));
        long m = some * s.taps(), padded = ceil_div(m, kRows) * kRows, pitch = ceil_div(columns, kWide<T>) * kWide<T>;
        long step = even(rows, kDepth);
        T *right = scratch<T, 2>(step * kStrip), *left = scratch<T, 3>(step * padded);
        T *unfolded = scratch<T, 4>(padded * kStrip);
        for (long k = 0; k < rows; k += step) {
            long steps = std::min(step, rows - k);
            const T *image = g + (from.image * s.O + group * rows + k) * s.length();
            pack(from, image, steps, right);
            pack_left(w + (group * rows + k) * depth + c * s.taps(), m, steps, left);
            tiles(left, right, m, steps, columns, pitch, unfolded, k > 0);
        }
        T *base = x + (to.image * s.C + group * channels + c) * s.area();
        for (long i = 0; i < m; ++i) to.add(unfolded + i * pitch, i % s.taps(), base + i / s.taps() * s.area());
    }

    void pack(const Places<T> &from, const T *image, long steps, T *packed) const {
        for (long q = 0; q < from.groups; q += kVectors, packed += steps * kWide<T>)
            for (long i = 0; i < steps; ++i)
                from.load(image + i * s.length(), 0, q, std::min(q + kVectors, from.groups), packed + i * kWide<T>);
    }

    // w (steps, depth), its columns [0, m), as panels of kRows columns.
    void pack_left(const T *from, long m, long steps, T *left) const {
        for (long k = 0; k < steps; ++k, from += depth)
            for (long i = 0; i < m; i += kRows) {
                T *to = left + i * steps + k * kRows;
                if (m - i >= kRows) std::memcpy(to, from + i, kRows * sizeof(T));
                else
                    for (int r = 0; r < kRows; ++r) to[r] = i + r < m ? from[i + r] : T(0);
            }
    }

    static void tiles(const T *left, const T *right, long m, long steps, long columns, long pitch, T *to, bool add) {
        for (long i = 0; i < m; i += kRows) {
            const T *a[kRows] = {left + i * steps}, *b = right;
            for (long j = 0; j < columns; j += kWide<T>, b += steps * kWide<T>)
                product<T, kByPanels>(a, b, steps, columns - j, to + i * pitch + j, pitch, add);
        }
    }

    // With stride 1 it is a convolution too, of g with w turned round, kernel and channels; the copy of w pays where there are many
    // columns, and what is multiplied with zeros of the padding must not be a quarter of all.  t: its windows.
    static bool turns(const Windows &s, Windows &t) {
        if (s.N * s.length() <= 256 || 3 * s.area() > 4 * s.length()) return false;
        for (int d = 0; d < 3; ++d)
            if (s.stride[d] != 1 || s.pad[d] > s.dil[d] * (s.k[d] - 1)) return false;
        t = s;
        std::swap(t.C, t.O);
        for (int d = 0; d < 3; ++d) {
            std::swap(t.in[d], t.out[d]);
            t.pad[d] = s.dil[d] * (s.k[d] - 1) - s.pad[d];
        }
        return true;
    }

    bool turned_round() const {
        Windows t;
        if (!turns(s, t)) return false;
        Scratch<T> v(s.O * depth);
        T *to = v.get();
        parallel_for(s.G * channels, 1 + kGrain / (rows * s.taps()), [=, this_ = *this](long begin, long end) {
            for (long c = begin; c < end; ++c) this_.turn_round(c / this_.channels, c % this_.channels, to);
        });
        Forward<T>{t, g, to, x}.run();
        return true;
    }

    void turn_round(long group, long c, T *to) const {
        long taps = s.taps();
        const T *from = w + group * rows * depth + c * taps;
        to += (group * channels + c) * rows * taps;
        for (long o = 0; o < rows; ++o, from += depth, to += taps)
            for (long t = 0; t < taps; ++t) to[taps - 1 - t] = from[t];
    }

    void run() const {
        if (turned_round()) return;
        long together = std::max(1L, kStrip / (long)s.length()), batches = ceil_div(s.N, together);
        long blocks = ceil_div(channels, block);
        parallel_for(batches * s.G * blocks, 1, [=, this_ = *this](long begin, long end) {
            for (long t = begin; t < end; ++t) {
                long n = t / blocks % batches * together;
                this_.images(t / blocks / batches, t % blocks * this_.block, n, std::min((long)this_.s.N, n + together));
            }
        });
    }
};

// dw^T = unfolded x times g^T, a block of rows (channel, kernel position) at a time.
template <class T> struct WeightGradient {
    static constexpr long kStrip = 256;
    static constexpr long kOutputs = 10 * kWide<T>;  // summed at once
    const Windows &s;
    const T *g, *x;
    T *dw;
    long begin = 0, end = s.N * s.length();  // the places that are summed up
    long outputs = s.O / s.G, channels = s.C / s.G, rows = channels * s.taps();

    void block(long group, long row, long count) const {
        for (long o = 0; o < outputs; o += kOutputs) some_outputs(group, row, count, o, std::min(kOutputs, outputs - o));
    }

    void some_outputs(long group, long row, long count, long o, long wide) const {
        long panels = ceil_div(wide, kWide<T>), tiles = ceil_div(count, kRows);
        T *sums = scratch<T, 4>(panels * tiles * kRows * kWide<T>), *left = scratch<T, 3>(count * kStrip);
        T *right = scratch<T, 2>(kStrip * kWide<T>);
        for (long first = begin; first < end; first += kStrip) {
            long columns = std::min(kStrip, end - first);
            Places<T> from;
            from.find(s, first, columns, false, s.C, scratch<int32_t, 0>(Places<T>::room(s, kStrip)));
            unfold(from, x + (from.image * s.C + group * channels) * s.area(), row, count, left);
            for (long p = 0; p < panels; ++p) {
                long j = p * kWide<T>, width = std::min((long)kWide<T>, wide - j);
                turn(group * outputs + o + j, width, first, columns, right);
                for (long i = 0; i < tiles; ++i) {
                    Rows<T> a(left, kStrip, i * kRows, count);
                    product<T, kByRows>(a.at, right, columns, width, sums + (i * panels + p) * kRows * kWide<T>, kWide<T>,
                                      first > begin);
                }
            }
        }
        for (long i = 0; i < tiles; ++i)
            for (long p = 0; p < panels; ++p)
                store(sums + (i * panels + p) * kRows * kWide<T>, row + i * kRows, std::min((long)kRows, count - i * kRows),
                      group * outputs + o + p * kWide<T>, std::min((long)kWide<T>, wide - p * kWide<T>));
    }

    void unfold(const Places<T> &from, const T *image, long row, long count, T *left) const {
        for (long i = row; i < row + count; ++i, left += kStrip)
            from.load(image + i / s.taps() * s.area(), i % s.taps(), 0, from.groups, left);
    }

    // Outputs [o, o + width) of the gradient at `columns` columns: (columns, kWide)
    void turn(long o, long width, long first, long columns, T *right) const {
        long L = s.length();
        for (long done = 0; done < columns;) {
            long column = first + done, l = column % L, run = std::min(columns - done, L - l);
            const T *from = g + (column / L * s.O + o) * L + l;
            T *to = right + done * kWide<T>;
            constexpr long N = kLanes<T>;
            long near = 0, whole = width / N * N;
            for (; near + N <= run; near += N) {
                for (long j = 0; j < whole; j += N) square<T, N>(from + j * L + near, L, to + near * kWide<T> + j, kWide<T>);
                for (long j = whole; j < width; ++j)
                    for (long i = near; i < near + N; ++i) to[i * kWide<T> + j] = from[j * L + i];
            }
            for (; near < run; ++near)
                for (long j = 0; j < width; ++j) to[near * kWide<T> + j] = from[j * L + near];
            done += run;
        }
        if (width == kWide<T>) return;
        for (long i = 0; i < columns; ++i)
            for (long j = width; j < kWide<T>; ++j) right[i * kWide<T> + j] = 0;
    }

    void store(const T *sum, long row, long count, long o, long width) const {
        for (long j = 0; j < width; ++j) {
            T *to = dw + (o + j) * rows + row;
            if (count == kRows)
                for (int i = 0; i < kRows; ++i) to[i] = sum[i * kWide<T> + j];
            else
                for (long i = 0; i < count; ++i) to[i] = sum[i * kWide<T> + j];
        }
    }

    void run() const {
        if constexpr (sizeof(T) == sizeof(float))
            if (conv_weight_by_points(s, g, x, dw)) return;
        if (long parts = parts_of(s); parts > 1) return by_parts(parts);
        // What each task turns round again should be little beside its products.
        long tasks = rows * s.G >= 3 * kBlockRows * threads() ? 3 * threads() : threads();
        long parts = std::max(ceil_div(rows, kBlockRows), ceil_div(tasks, s.G));
        if (parts < 3 * threads()) parts = ceil_div(parts, threads()) * threads();  // none waits for a last one
        long some = ceil_div(ceil_div(rows, parts), kRows) * kRows, blocks = ceil_div(rows, some);
        parallel_for(s.G * blocks, 1, [=, this_ = *this](long begin, long end) {
            for (long t = begin; t < end; ++t) {
                long row = t % blocks * some;
                this_.block(t / blocks, row, std::min(some, this_.rows - row));
            }
        });
    }

    // Into how many parts the places are cut where what is summed is small, so that none turns gradients round that another does, too.
    // On any number of threads as many: the sum is the same.
    static long parts_of(const Windows &s) {
        constexpr long kPart = 4 * kStrip, kSmall = 1 << 18;
        const long size = s.count("weight");
        if (size > 1 << 16 || s.C / s.G * s.taps() > kBlockRows) return 1;
        return std::min({8L, s.N * (long)s.length() / kPart, kSmall / std::max(size, 1L)});
    }

    void by_parts(long most) const {
        const long size = s.count("weight"), some = ceil_div(ceil_div(end, most), kStrip) * kStrip, parts = ceil_div(end, some);
        Scratch<T> sums(parts * size);
        T *to = sums.get();
        parallel_for(parts * s.G, 1, [=, this_ = *this](long first, long last) {
            for (long t = first; t < last; ++t) {
                long part = t / this_.s.G;
                WeightGradient own = this_;
                own.dw = to + part * size, own.begin = part * some, own.end = std::min(own.begin + some, this_.end);
                own.block(t % this_.s.G, 0, this_.rows);
            }
        });
        for (long i = 0; i < size; ++i) {
            T sum = to[i];
            for (long part = 1; part < parts; ++part) sum += to[part * size + i];
            dw[i] = sum;
        }
    }
};

// Bytes beside operands and results: of the product, of the adjoint in x ("i") and in w ("w").
template <class T> long room(const Windows &s, char of) {
    constexpr bool points = sizeof(T) == sizeof(float);
    Windows t;
    if (of == 'w') {
        const long room = points ? weight_points_room(s) : 0, parts = WeightGradient<T>::parts_of(s);
        return room || parts < 2 ? room : parts * s.count("weight") * (long)sizeof(T);
    }
    if (of != 'i') return points ? points_room(s) : 0;
    if (!InputGradient<T>::turns(s, t)) return 0;
    return s.count("weight") * (long)sizeof(T) + (points ? points_room(t) : 0);
}

}  // namespace
}  // namespace rl

#define PRODUCT(T, S, NAME, RULE, A, B, TO)                                                                   \
    RL_EXPORT void rl_##NAME##_##S(Array *a_, Array *b_, Array *to_, Array *windows) {                        \
        rl::Call call(#NAME);                                                                                 \
        rl::Windows s(call, windows);                                                                         \
        call.expect(s.countable(), "sizes that are counted in 32 bits");                                      \
        const T *a = call.in<T>(A, a_, s.count(A)), *b = call.in<T>(B, b_, s.count(B));                       \
        T *to = call.out<T>(TO, to_, s.count(TO));                                                            \
        call.run([=, &s] { rl::RULE<T>{s, a, b, to}.run(); });                                                \
    }
#define ROOM(T, S)                                                           \
    RL_EXPORT long rl_conv_room_##S(Array *windows, int of) {                \
        rl::Call call("conv_room");                                          \
        rl::Windows s(call, windows);                                        \
        long bytes = 0;                                                      \
        call.run([&] { bytes = rl::room<T>(s, (char)of); });                 \
        return bytes;                                                        \
    }
#define ALL(T, S)                                                            \
    ROOM(T, S)                                                               \
    PRODUCT(T, S, conv, Forward, "input", "weight", "output")                \
    PRODUCT(T, S, conv_input, InputGradient, "output", "weight", "input")    \
    PRODUCT(T, S, conv_weight, WeightGradient, "output", "input", "weight")
RL_BOTH(ALL)
