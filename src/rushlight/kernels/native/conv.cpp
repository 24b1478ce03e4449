// Convolution, its input gradient and its weight gradient as products of blocks that are packed on the way.
//
// The columns of the product are the outputs of all images in one row, so that small images fill the vectors
// too.  Only strips of a few hundred columns are ever unfolded, in buffers that each thread keeps.  How a sum is
// split depends on shapes alone, never on the threads.
#include <algorithm>

#include "direct.h"
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

// Lines of memory that the next strip reads: asked for while the present one is multiplied, a share with each tile.
template <class T> struct Ahead {
    static constexpr long kLine = 64 / sizeof(T);
    const T *data;
    long pitch, rows, lines, row = 0, line = 0;

    // `rows` rows of `count` numbers
    Ahead(const T *at, long apart, long some, long count) : data(at), pitch(apart), rows(some), lines(ceil_div(count, kLine)) {}
    long share(long tiles) const { return ceil_div(rows * lines, tiles); }

    RL_MEMBER void ask(long some) {
        for (; some && row < rows; --some) {
            __builtin_prefetch(data + row * pitch + line * kLine, 0, 2);
            if (++line == lines) line = 0, ++row;
        }
    }
};

template <class T> struct Forward {
    static constexpr long kPanels = 4, kStrip = kPanels * kWide<T>;
    const Windows &s;
    const T *x, *w;
    T *y;
    long rows = s.O / s.G, channels = s.C / s.G, depth = channels * s.taps();
    long each = even(ceil_div(s.N * s.length(), kWide<T>), kPanels) * kWide<T>;  // columns of a strip

    void strip(long group, long first, long row_begin, long row_end) const {
        long columns = std::min(each, s.N * s.length() - first);
        Places<T> from, to;
        from.find(s, first, columns, false, s.C, scratch<int32_t, 0>(Places<T>::room(s, kStrip)));
        to.find(s, first, columns, true, s.O, scratch<int32_t, 1>(Places<T>::room(s, kStrip)));
        const T *image = x + (from.image * s.C + group * channels) * s.area();
        long step = even(depth, kDepth);
        T *packed = scratch<T, 2>(step * kStrip);
        for (long k = 0; k < depth; k += step) {
            long steps = std::min(step, depth - k);
            pack(from, image, k, steps, packed);
            const bool last = k + step >= depth;
            Ahead<T> next = inputs_ahead(group, last ? first + each : first, last ? 0 : k + step, step);
            const long share = next.share(ceil_div(row_end - row_begin, kRows));
            for (long i = row_begin; i < row_end; i += kRows) {
                next.ask(share);
                row_tiles(to, group, i, row_end, packed, k, steps);
            }
        }
    }

    // What is packed for `steps` steps of the sum from k on, of columns of one image.
    Ahead<T> inputs_ahead(long group, long column, long k, long steps) const {
        const long L = s.length(), area = s.area(), taps = s.taps(), total = s.N * L;
        const long columns = column < total ? std::min({each, total - column, L - column % L}) : 0;
        const T *image = x + (column / L * s.C + group * channels + k / taps) * area;
        return {image + column % L * area / L, area, std::min(ceil_div(steps, taps), channels - k / taps), columns * area / L};
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

    // The tile that is written next.
    RL_MEMBER static void ask(const T *to, long rows, long pitch, long columns) {
        for (long r = 0; r < rows; ++r, to += pitch)
            for (long c = 0; c < columns; c += Ahead<T>::kLine) __builtin_prefetch(to + c, 1, 3);
    }

    void row_tiles(const Places<T> &to, long group, long i, long row_end, const T *packed, long k, long steps) const {
        alignas(64) T out[kRows * kWide<T>];
        long o = group * rows + i, L = s.length();
        Rows<T> a(w + group * rows * depth + k, depth, i, row_end);
        for (long j = 0; j < to.count; j += kWide<T>, packed += steps * kWide<T>) {
            long columns = std::min((long)kWide<T>, to.count - j);
            bool side_by_side = to.at[j + columns - 1] - to.at[j] == columns - 1;
            T *rows_at = y + (to.image * s.O + o) * L;
            if (side_by_side && k == 0) ask(rows_at + to.at[j] + kRows * L, std::min((long)kRows, row_end - i - kRows), L, columns);
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
        if (conv_direct(s, x, w, y)) return;
        long strips = ceil_div(s.N * s.length(), each), block = rows_per_task(rows, strips * s.G, rows);
        long blocks = ceil_div(rows, block);
        parallel_tasks(strips * s.G * blocks, s.work(), [=, this_ = *this](long begin, long end) {
            for (long t = begin; t < end; ++t) {
                long i = t % blocks * block, strip = t / blocks % strips;
                this_.strip(t / blocks / strips, strip * this_.each, i, std::min(rows_of(this_), i + block));
            }
        });
    }
    static long rows_of(const Forward &f) { return f.rows; }
};

// x += the fold of w^T g, a block of channels of a few images at a time.
template <class T> struct InputGradient {
    static constexpr long kStrip = 5 * kWide<T>, kSteps = 512;  // columns, and steps of a sum, that are packed at once: w is packed for each strip
    const Windows &s;
    const T *g, *w;
    T *x;
    long rows = s.O / s.G, channels = s.C / s.G, depth = channels * s.taps();
    long together = even(s.N, std::max(1L, kStrip / (long)s.length())), batches = ceil_div(s.N, together);  // images
    long block = even(channels, block_of());

    // Channels for one task: so many that w is read in few blocks, so few that no thread waits for a last one, or has none.
    long block_of() const {
        const long others = batches * s.G, wanted = ceil_div(3L * threads(), others), taps = s.taps(), usual = std::max(1L, 64 / taps);
        const long least = others * ceil_div(channels, usual) < threads() ? 32 / taps : usual;
        return std::max({1L, least, std::min(192 / taps, channels / wanted)});
    }

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
        long step = even(rows, kSteps);
        T *right = scratch<T, 2>(step * kStrip), *left = scratch<T, 3>(panel(step) * padded / kRows);
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

    // Numbers from one panel of w to the next: a line more than they have, so that they do not compete for the same places of a cache.
    static long panel(long steps) { return steps * kRows + 64 / sizeof(T); }

    static constexpr long kRowsAhead = 8;  // of w, which are asked for before they are packed: parts of them lie apart

    // w (steps, depth), its columns [0, m), as panels of kRows columns.
    void pack_left(const T *from, long m, long steps, T *left) const {
        Ahead<T> lines{from, depth, steps, m + 64 / (long)sizeof(T)};
        lines.ask(kRowsAhead * lines.lines);
        for (long k = 0; k < steps; ++k, from += depth) {
            lines.ask(lines.lines);
            for (long i = 0; i < m; i += kRows) {
                T *to = left + i / kRows * panel(steps) + k * kRows;
                if (m - i >= kRows) std::memcpy(to, from + i, kRows * sizeof(T));
                else
                    for (int r = 0; r < kRows; ++r) to[r] = i + r < m ? from[i + r] : T(0);
            }
        }
    }

    static void tiles(const T *left, const T *right, long m, long steps, long columns, long pitch, T *to, bool add) {
        for (long i = 0; i < m; i += kRows) {
            const T *a[kRows] = {left + i / kRows * panel(steps)}, *b = right;
            for (long j = 0; j < columns; j += kWide<T>, b += steps * kWide<T>)
                product<T, kByPanels>(a, b, steps, columns - j, to + i * pitch + j, pitch, add);
        }
    }

    // Of places that are a stride apart it is a convolution too, of g with the elements of w that reach them, turned round, kernel and
    // channels; the copies of w and, where there are strides, of the result pay where there are many columns, and what is multiplied
    // with zeros of the padding must not be a quarter of all.
    struct Phase {
        Windows t;
        long first[3] = {0, 0, 0};  // kernel position that reaches the first place

        // at: of the places in each dimension.
        bool find(const Windows &s, const long *at) {
            t = s;
            std::swap(t.C, t.O);
            for (int d = 0; d < 3; ++d) {
                const long stride = s.stride[d], reached = at[d] + s.pad[d];
                first[d] = reached % stride;
                t.in[d] = s.out[d];
                t.out[d] = ceil_div(s.in[d] - at[d], stride);
                t.k[d] = ceil_div(s.k[d] - first[d], stride);
                t.pad[d] = (stride == 1 ? s.dil[d] : 1) * (t.k[d] - 1) - reached / stride;
                t.stride[d] = 1;
                if ((stride > 1 && s.dil[d] > 1) || t.out[d] < 1 || t.k[d] < 1 || t.pad[d] < 0) return false;
            }
            return true;
        }
    };

    static long strides(const Windows &s) { return s.stride[0] * s.stride[1] * s.stride[2]; }

    // f(phase, its place in each dimension), those of a row together.
    template <class F> static bool each_phase(const Windows &s, F f) {
        Phase phase;
        for (long a = 0; a < strides(s); ++a) {
            const long at[3] = {a / s.stride[2] / s.stride[1], a / s.stride[2] % s.stride[1], a % s.stride[2]};
            if (!phase.find(s, at)) return false;
            f(phase, at);
        }
        return true;
    }

    static bool turns(const Windows &s) {
        const long made = s.C / s.G;  // rows of tiles
        if (2 * made < ceil_div(made, kRows) * kRows && strides(s) > 1) return false;
        if (s.N * s.length() <= 256 || 3 * s.area() > 4 * s.length() * strides(s) || strides(s) > std::min<long>(8, s.taps())) return false;
        return each_phase(s, [](const Phase &, const long *) {});
    }

    // Elements of the results of a row's phases, where they are not the gradient itself.
    static long results(const Windows &s) { return strides(s) == 1 ? 0 : s.stride[2] * result(s); }
    static long result(const Windows &s) {
        return s.N * s.C * ceil_div(s.in[0], s.stride[0]) * ceil_div(s.in[1], s.stride[1]) * ceil_div(s.in[2], s.stride[2]);
    }

    bool turned_round() const {
        if (!turns(s)) return false;
        Scratch<T> weights(s.O * depth), own(results(s));
        const bool apart = own.size() > 0;
        each_phase(s, [&](const Phase &phase, const long *at) {
            turn_round(phase, weights.get());
            Forward<T>{phase.t, g, weights.get(), apart ? own.get() + at[2] * result(s) : x}.run();
            if (apart && at[2] == s.stride[2] - 1) weave(phase, at, own.get());
        });
        return true;
    }

    void turn_round(const Phase &phase, T *to) const {
        constexpr long N = kLanes<T>;
        parallel_for(s.G * ceil_div(channels, N), 1 + kGrain / (N * rows * phase.t.taps()), [=, this_ = *this, &phase](long begin, long end) {
            const long blocks = ceil_div(this_.channels, N);
            for (long b = begin; b < end; ++b) this_.turn_some(phase, b / blocks, b % blocks * N, std::min(N, this_.channels - b % blocks * N), to);
        });
    }

    // Channels [c, c + some): where there is one kernel position, squares of w.
    void turn_some(const Phase &phase, long group, long c, long some, T *to) const {
        constexpr long N = kLanes<T>;
        if (s.taps() > 1 || some < N) {
            for (long i = c; i < c + some; ++i) turn_round(phase, group, i, to);
            return;
        }
        const T *from = w + group * rows * depth + c;
        to += (group * channels + c) * rows;
        long o = 0;
        for (; o + N <= rows; o += N) square<T, N>(from + o * depth, depth, to + o, rows);
        for (; o < rows; ++o)
            for (long i = 0; i < N; ++i) to[i * rows + o] = from[o * depth + i];
    }

    void turn_round(const Phase &phase, long group, long c, T *to) const {
        const Windows &t = phase.t;
        const long taps = s.taps();
        const T *from = w + group * rows * depth + c * taps;
        to += (group * channels + c) * rows * t.taps();
        if (strides(s) == 1) {
            for (long o = 0; o < rows; ++o, from += depth, to += taps)
                for (long i = 0; i < taps; ++i) to[i] = from[taps - 1 - i];
            return;
        }
        for (long o = 0; o < rows; ++o, from += depth)
            for (long i = t.k[0] - 1; i >= 0; --i)
                for (long j = t.k[1] - 1; j >= 0; --j)
                    for (long k = t.k[2] - 1; k >= 0; --k) {
                        const long plane = phase.first[0] + i * s.stride[0], row = phase.first[1] + j * s.stride[1];
                        *to++ = from[(plane * s.k[1] + row) * s.k[2] + phase.first[2] + k * s.stride[2]];
                    }
    }

    // Results of a row's phases, the last of which is given, to the places that they are for.
    void weave(const Phase &phase, const long *at, const T *from) const {
        const long deep = phase.t.out[0], high = phase.t.out[1], each = result(s), narrow = phase.t.out[2];
        parallel_for(s.N * s.C * deep * high, row_grain(s.in[2]), [=, this_ = *this, &phase](long begin, long end) {
            const Windows &s = this_.s;
            const long wide = s.in[2], stride = s.stride[2];
            for (long r = begin; r < end; ++r) {
                const long z = at[0] + r / high % deep * s.stride[0], y = at[1] + r % high * s.stride[1];
                T *to = this_.x + ((r / high / deep * s.in[0] + z) * s.in[1] + y) * wide;
                for (long a = 0; a < stride; ++a) {
                    const long width = ceil_div(wide - a, stride);
                    const T *row = from + a * each + r * width;
                    if (stride == 2 && a == 0) {
                        const T *next = row - r * width + each + r * narrow;
                        for (long i = 0; i < narrow; ++i) to[2 * i] = row[i], to[2 * i + 1] = next[i];
                        if (width > narrow) to[2 * narrow] = row[narrow];
                        break;
                    }
                    for (long i = 0; i < width; ++i) to[i * stride + a] = row[i];
                }
            }
        });
    }

    void run() const {
        if (turned_round()) return;
        long blocks = ceil_div(channels, block);
        parallel_tasks(batches * s.G * blocks, s.work(), [=, this_ = *this](long begin, long end) {
            for (long t = begin; t < end; ++t) {
                long batches = this_.batches, n = t / blocks % batches * this_.together;
                this_.images(t / blocks / batches, t % blocks * this_.block, n, std::min((long)this_.s.N, n + this_.together));
            }
        });
    }
};

// dw = g times unfolded x^T, a block of outputs times some of the rows (channel, kernel position) at a time.
template <class T> struct WeightGradient {
    static constexpr long kStrip = 256;
    static constexpr long kResults = 4;  // panels of results that are asked for together: what lies side by side comes faster
    const Windows &s;
    const T *g, *x;
    T *dw;
    long begin = 0, end = s.N * s.length();  // the places that are summed up
    long outputs = s.O / s.G, channels = s.C / s.G, rows = channels * s.taps();

    struct Block {
        long group, output, outputs, row, rows;
    };

    void block(const Block &b) const {
        const long each = even(ceil_div(b.rows, kLanes<T>), kVectors) * kLanes<T>, panels = ceil_div(b.rows, each), tiles = ceil_div(b.outputs, kRows);
        T *left = scratch<T, 3>(b.outputs * kStrip), *right = scratch<T, 2>(kStrip * kWide<T>);
        const long strip = ceil_div(even(end - begin, kStrip), kLanes<T>) * kLanes<T>;
        for (long first = begin; first < end; first += strip) {
            const long columns = std::min(strip, end - first);
            Places<T> from;
            from.find(s, first, columns, false, s.C, scratch<int32_t, 0>(Places<T>::room(s, kStrip)));
            gather_gradients(b, first, columns, left);
            Ahead<T> outer = gradients_ahead(b, first + strip), inner = inputs_ahead(b, first + strip);
            const long outer_share = outer.share(panels * tiles), inner_share = inner.share(panels * tiles);
            Ahead<T> result = results_ahead(b, b.row, first > begin ? 0 : kResults * each);
            result.ask(b.outputs * kResults);
            for (long row = b.row, last = b.row + b.rows; row < last; row += each) {
                const long width = std::min(each, last - row);
                if ((row - b.row) % (kResults * each) == 0) result = results_ahead(b, row + kResults * each, first > begin ? 0 : kResults * each);
                const long share = result.share(kResults * tiles);
                turn_inputs(from, x + (from.image * s.C + b.group * channels) * s.area(), row, width, right);
                T *to = dw + (b.group * outputs + b.output) * rows + row;
                for (long i = 0; i < b.outputs; i += kRows) {
                    outer.ask(outer_share);
                    inner.ask(inner_share);
                    result.ask(share);
                    add_tile(Rows<T>(left, kStrip, i, b.outputs), right, columns, std::min((long)kRows, b.outputs - i), width, to + i * rows, first > begin);
                }
            }
        }
    }

    Ahead<T> results_ahead(const Block &b, long row, long count) const {
        return {dw + (b.group * outputs + b.output) * rows + row, rows, b.outputs, std::max(0L, std::min(count, b.row + b.rows - row))};
    }

    void add_tile(const Rows<T> &a, const T *right, long columns, long some, long width, T *to, bool add) const {
        if (some == kRows && width % kLanes<T> == 0) return product<T, kByRows>(a.at, right, columns, width, to, rows, add);
        alignas(64) T sums[kRows * kWide<T>];
        product<T, kByRows>(a.at, right, columns, width, sums, kWide<T>, false);
        for (long i = 0; i < some; ++i)
            for (long j = 0; j < width; ++j) to[i * rows + j] = (add ? to[i * rows + j] : T(0)) + sums[i * kWide<T> + j];
    }

    // Columns of one image from `column` on that belong to a strip; 0 past the end.
    long columns_of(long column) const { return column < end ? std::min({kStrip, end - column, s.length() - column % (long)s.length()}) : 0; }

    Ahead<T> gradients_ahead(const Block &b, long column) const {
        const long L = s.length();
        return {g + (column / L * s.O + b.group * outputs + b.output) * L + column % L, L, b.outputs, columns_of(column)};
    }

    Ahead<T> inputs_ahead(const Block &b, long column) const {
        const long L = s.length(), taps = s.taps(), area = s.area(), channel = b.group * channels + b.row / taps;
        return {x + (column / L * s.C + channel) * area + column % L * area / L, area, ceil_div(b.rows, taps), columns_of(column) * area / L};
    }

    // The gradients of a block's outputs at `columns` columns: (outputs, kStrip)
    void gather_gradients(const Block &b, long first, long columns, T *left) const {
        const long L = s.length();
        for (long done = 0, run; done < columns; done += run) {
            const long column = first + done, l = column % L;
            run = std::min(columns - done, L - l);
            const T *from = g + (column / L * s.O + b.group * outputs + b.output) * L + l;
            for (long i = 0; i < b.outputs; ++i) std::memcpy(left + i * kStrip + done, from + i * L, run * sizeof(T));
        }
    }

    // Rows [row, row + width) of unfolded x turned: (columns, kWide)
    void turn_inputs(const Places<T> &from, const T *image, long row, long width, T *right) const {
        constexpr long N = kLanes<T>;
        T *unfolded = scratch<T, 4>(kWide<T> * kStrip);
        for (long i = 0; i < width; ++i) from.load(image + (row + i) / s.taps() * s.area(), (row + i) % s.taps(), 0, from.groups, unfolded + i * kStrip);
        for (long q = 0; q < from.groups; ++q)
            for (long j = 0; j < width; j += N) square<T, N>(unfolded + j * kStrip + q * N, kStrip, right + q * N * kWide<T> + j, kWide<T>);
    }

    void run() const {
        if constexpr (sizeof(T) == sizeof(float))
            if (conv_weight_by_points(s, g, x, dw)) return;
        if (conv_weight_direct(s, g, x, dw)) return;
        if (long parts = parts_of(s); parts > 1) return by_parts(parts);
        const Grid grid(*this, threads());
        parallel_tasks(grid.tasks(s), s.work(), [=, this_ = *this](long first, long last) {
            for (long t = first; t < last; ++t) this_.block(grid.block(this_, t));
        });
    }

    // The blocks that tasks take: what each gathers and turns round again should be little beside its products.
    struct Grid {
        long some, few, high, wide;  // outputs and rows of a block; blocks of outputs and of rows
        Grid(const WeightGradient &of, long tasks) {
            const long panels = ceil_div(of.rows, kWide<T>), least = ceil_div(of.outputs, kBlockRows), all = of.s.G;
            if (panels * least * all >= 12 * tasks) tasks *= 3;
            wide = std::min(panels, ceil_div(tasks, least * all));
            high = std::max(least, std::min(ceil_div(of.outputs, kRows), ceil_div(tasks, wide * all)));
            some = ceil_div(ceil_div(of.outputs, high), kRows) * kRows, few = ceil_div(ceil_div(of.rows, wide), kLanes<T>) * kLanes<T>;
            high = ceil_div(of.outputs, some), wide = ceil_div(of.rows, few);
        }
        long tasks(const Windows &s) const { return s.G * high * wide; }
        Block block(const WeightGradient &of, long t) const {
            const long output = t / wide % high * some, row = t % wide * few;
            return {t / wide / high, output, std::min(some, of.outputs - output), row, std::min(few, of.rows - row)};
        }
    };

    // Into how many parts the places are cut where what is summed is small, so that none turns images round that another does, too.
    // On any number of threads as many: the sum is the same.
    static long parts_of(const Windows &s) {
        constexpr long kPart = 4 * kStrip, kSmall = 1 << 18;
        const long size = s.count("weight");
        if (size > 1 << 16 || s.C / s.G * s.taps() > kBlockRows || s.O / s.G > kBlockRows) return 1;
        const long parts = std::min({8L, s.N * (long)s.length() / kPart, kSmall / std::max(size, 1L)});
        return parts > 1 ? parts + parts % 2 : parts;
    }

    void by_parts(long most) const {
        const long size = s.count("weight"), some = ceil_div(ceil_div(end, most), kLanes<T>) * kLanes<T>, parts = ceil_div(end, some);
        const Grid grid(*this, ceil_div((long)threads(), parts));
        const long blocks = grid.tasks(s);
        Scratch<T> sums(parts * size);
        T *to = sums.get();
        parallel_tasks(parts * blocks, s.work(), [=, this_ = *this](long first, long last) {
            for (long t = first; t < last; ++t) {
                const long part = t / blocks;
                WeightGradient own = this_;
                own.dw = to + part * size, own.begin = part * some, own.end = std::min(own.begin + some, this_.end);
                own.block(grid.block(this_, t % blocks));
            }
        });
        parallel_for(size, kGrain, [=, this_ = *this](long first, long last) {
            std::memcpy(this_.dw + first, to + first, (last - first) * sizeof(T));
            for (long part = 1; part < parts; ++part)
#pragma omp simd
                for (long i = first; i < last; ++i) this_.dw[i] += to[part * size + i];
        });
    }
};

// Of the product itself.
template <class T> long product_room(const Windows &s) {
    const long room = sizeof(T) == sizeof(float) ? points_room(s) : 0;
    return room ? room : direct_room<T>(s);
}

// Bytes beside operands and results: of the product, of the adjoint in x ("i") and in w ("w").
template <class T> long room(const Windows &s, char of) {
    constexpr bool points = sizeof(T) == sizeof(float);
    if (of == 'w') {
        long room = points ? weight_points_room(s) : 0;
        if (room || weight_direct_room<T>(s, room)) return room;
        const long parts = WeightGradient<T>::parts_of(s);
        return parts < 2 ? 0 : parts * s.count("weight") * (long)sizeof(T);
    }
    typedef InputGradient<T> Input;
    if (of != 'i') return product_room<T>(s);
    if (!Input::turns(s)) return 0;
    long most = 0;
    Input::each_phase(s, [&](const typename Input::Phase &phase, const long *) { most = std::max(most, product_room<T>(phase.t)); });
    return most + (s.count("weight") + Input::results(s)) * (long)sizeof(T);
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
