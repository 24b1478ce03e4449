// How images lie in memory for convolutions of bfloat16 (see conv_pairs.h): padded, in planes, a plane for each phase of a stride.
#pragma once
#include <algorithm>
#include <vector>

#include "pairs.h"
#include "windows.h"

namespace rl {

// One dimension: output q looks at kernel position t at source number (q + origin + ahead) * step + phase.
struct Slide {
    struct Tap {
        long t, phase, ahead;
    };
    long size, count, step, origin = 0, reach = 0;  // of the source; outputs
    std::vector<long> phases;
    std::vector<Tap> taps;

    Slide(long size_, long count_, long step_) : size(size_), count(count_), step(step_) {}

    // A kernel position that looks `at` numbers ahead of q * step.
    void look(long t, long at) {
        const long ahead = at >= 0 ? at / step : -ceil_div(-at, step), phase = at - ahead * step;
        const auto found = std::find(phases.begin(), phases.end(), phase);
        taps.push_back({t, found - phases.begin(), ahead});
        if (found == phases.end()) phases.push_back(phase);
    }
    Slide &&closed() {
        const auto less = [](const Tap &x, const Tap &y) { return x.ahead < y.ahead; };
        if (taps.empty()) return std::move(*this);
        origin = std::min_element(taps.begin(), taps.end(), less)->ahead;
        reach = std::max_element(taps.begin(), taps.end(), less)->ahead - origin;
        for (Tap &tap : taps) tap.ahead -= origin;
        return std::move(*this);
    }
    // The source's number that place j of a plane of this phase has.
    long place(long j, long phase) const { return (j + origin) * step + phases[phase]; }
};

// Of a few channels, as of a picture, each place of the kernel's rows counts as a channel of its own, so that there are more to pair.
inline long folds(const Windows &s) { return s.C / s.G < 8 ? s.k[2] : 1; }

inline Slide along_inputs(const Windows &s, int d) {
    Slide found(s.in[d], s.out[d], s.stride[d]);
    for (long t = 0; t < (d == 2 && folds(s) > 1 ? 1 : s.k[d]); ++t) found.look(t, t * s.dil[d] - s.pad[d]);
    return found.closed();
}
// Of the inputs `from`, from + stride, ...: which outputs looked at them.
inline Slide along_outputs(const Windows &s, int d, long from) {
    Slide found(s.out[d], from < s.in[d] ? ceil_div(s.in[d] - from, s.stride[d]) : 0, 1);
    for (long t = 0; t < s.k[d]; ++t) {
        const long at = from + s.pad[d] - t * s.dil[d];
        if (at % s.stride[d] == 0) found.look(t, at / s.stride[d]);
    }
    return found.closed();
}

// Number j of a row of a plane is the source's number first + j * step, or 0 outside of [0, size).
struct Row {
    long first, step, size, count;
    long begin() const { return std::min(count, first < 0 ? ceil_div(-first, step) : 0); }
    Row moved(long by) const { return {first + by, step, size, count}; }
    long end() const { return std::max(begin(), std::min(count, first < size ? ceil_div(size - first, step) : 0)); }
};

// A row of pairs: of `low`, and of `high` unless it is nullptr.
RL_WIDE inline void pair_row(const uint16_t *low, const uint16_t *high, const Row &row, uint32_t *to) {
    const long begin = row.begin(), end = row.end(), step = row.step;
    std::fill(to, to + begin, 0u);
    std::fill(to + end, to + row.count, 0u);
    const long from = row.first + begin * step, n = end - begin;
    low += from, to += begin;
    if (high) high += from;
    long i = 0;
    if (step == 1) {
        for (; i < n; i += 16) {
            const __mmask16 mask = first_of(n - i);
            _mm512_mask_storeu_epi32(to + i, mask, joined(low + i, high ? high + i : nullptr, mask));
        }
        return;
    }
    if (step == 2)
        for (; i + 16 < n; i += 16) {  // of words of two numbers the lower one, the last of which is not the row's last
            __m512i x = _mm512_and_si512(_mm512_loadu_si512(low + 2 * i), _mm512_set1_epi32(0xffff));
            if (high) x = _mm512_or_si512(x, _mm512_slli_epi32(_mm512_loadu_si512(high + 2 * i), 16));
            _mm512_storeu_si512(to + i, x);
        }
    for (; i < n; ++i) to[i] = low[i * step] | (high ? (uint32_t)high[i * step] << 16 : 0u);
}

RL_WIDE inline void single_row(const uint16_t *from, const Row &row, uint16_t *to) {
    const long begin = row.begin(), end = row.end(), step = row.step, n = end - begin;
    std::fill(to, to + begin, (uint16_t)0);
    std::fill(to + end, to + row.count, (uint16_t)0);
    from += row.first + begin * step, to += begin;
    long i = 0;
    if (step == 1) {
        std::memcpy(to, from, n * sizeof *to);
        return;
    }
    if (step == 2)
        for (; i + 16 < n; i += 16) _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + i), _mm512_cvtepi32_epi16(_mm512_loadu_si512(from + 2 * i)));
    for (; i < n; ++i) to[i] = from[i * step];
}

// Some outputs of one image, rows [y, y + rows) of plane z and in these [x, x + columns); and how what they look at lies in memory: for each channel, or pair of
// channels, planes of the kernel's positions in depth and of phases, rows of `pitch` numbers.
struct Band {
    const Slide *slide;  // three
    long z, y, x, rows, columns;

    long pitch() const { return columns + slide[2].reach; }
    long high() const { return rows + slide[1].reach; }
    long plane() const { return high() * pitch(); }
    long planes() const { return (long)(slide[0].taps.size() * slide[1].phases.size() * slide[2].phases.size()); }
    long count() const { return (rows - 1) * pitch() + columns; }  // of positions, those between two rows included
    // What of it there is: less where it reaches beyond the outputs, none or less where it lies behind them.
    Band inside() const {
        return {slide, z, y, x, std::min(rows, slide[1].count - y), std::min(columns, slide[2].count - x)};
    }
    // Where a kernel position's plane begins, from the first, for position 0.
    long place(long d, long h, long w) const {
        const Slide::Tap &down = slide[1].taps[h], &right = slide[2].taps[w];
        const long plane_of = (d * (long)slide[1].phases.size() + down.phase) * (long)slide[2].phases.size() + right.phase;
        return plane_of * plane() + down.ahead * pitch() + right.ahead;
    }
    long position(long d, long h, long w, const int64_t *k) const {
        return (slide[0].taps[d].t * k[1] + slide[1].taps[h].t) * k[2] + slide[2].taps[w].t;
    }

    // row(where in a channel its numbers begin, or -1 outside; Row), of each row of memory in order.
    template <class F> RL_MEMBER void each_row(F row) const {
        for (const Slide::Tap &deep : slide[0].taps) {
            const long source = slide[0].place(z + deep.ahead, deep.phase);
            for (size_t h = 0; h < slide[1].phases.size(); ++h)
                for (size_t w = 0; w < slide[2].phases.size(); ++w)
                    for (long r = 0; r < high(); ++r) {
                        const long line = slide[1].place(y + r, h);
                        const bool in = source >= 0 && source < slide[0].size && line >= 0 && line < slide[1].size;
                        row(in ? (source * slide[1].size + line) * slide[2].size : -1,
                            Row{slide[2].place(x, w), slide[2].step, slide[2].size, pitch()});
                    }
        }
    }
};

constexpr long kSlack = 64;  // numbers that are read behind the last

// An image's outputs in bands of one size, of which the last ones may reach beyond: about `most` numbers of a channel at once.
struct Bands {
    const Slide *slide;
    long rows, columns, down, across;

    Bands(const Slide *slide_, long most) : slide(slide_) {
        const Slide &high = slide[1], &wide = slide[2];
        const long planes = std::max(1L, Band{slide, 0, 0, 0, 1, 1}.planes());
        columns = std::min(wide.count, std::max(kLeast, most / planes / (high.reach + 1) - wide.reach));
        rows = std::max(1L, std::min(high.count, most / planes / (columns + wide.reach) - high.reach));
        down = ceil_div(high.count, rows), across = ceil_div(wide.count, columns);
        rows = ceil_div(high.count, down), columns = ceil_div(wide.count, across);
    }
    static constexpr long kLeast = 256;  // columns: fewer are not worth what lies beside them

    long count() const { return slide[0].count * down * across; }
    Band band(long i) const { return {slide, i / across / down, i / across % down * rows, i % across * columns, rows, columns}; }
    Band largest() const { return band(0); }
};

// Numbers between channels: an odd number of cache lines, so that sixteen of them do not meet in one set of the cache.
inline long apart(long numbers, long line) { return (ceil_div(numbers, line) | 1) * line; }

}  // namespace rl
