// Elements in the middle of a number repeated, or some of them cut away: each result is written once, row by row.
#include <algorithm>

#include "common.h"

namespace rl {
namespace {

// A dimension: elements, those before them (less than 0: cut away), those of the result.
struct Padding {
    int64_t in, before, out;
    long first() const { return std::min(std::max<long>(before, 0), out); }                             // that is kept, in the result
    long kept() const { return std::max(0L, std::min(in - std::max<long>(-before, 0), out - first())); }
};

template <class U> void row(const Padding &along, const U *x, U *o, U number) {
    const long first = along.first(), kept = along.kept();
    std::fill(o, o + first, number);
    if (kept) std::memcpy(o + first, x + std::max<long>(-along.before, 0), kept * sizeof(U));
    std::fill(o + first + kept, o + along.out, number);
}

template <class U> void pad(const Padding *all, long dims, const U *x, U *o, U number) {
    const Padding &last = all[dims - 1];
    long rows = 1;
    for (long d = 0; d + 1 < dims; ++d) rows *= all[d].out;
    parallel_for(rows, row_grain(last.out), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            long at = 0, pitch = last.in, rest = r;
            bool inside = true;
            for (long d = dims - 2; d >= 0; --d) {
                const long i = rest % all[d].out - all[d].before;
                rest /= all[d].out, inside &= i >= 0 && i < all[d].in, at += i * pitch, pitch *= all[d].in;
            }
            if (inside) row(all[dims - 1], x + at, o + r * all[dims - 1].out, number);
            else std::fill(o + r * all[dims - 1].out, o + (r + 1) * all[dims - 1].out, number);
        }
    });
}

template <class U> void pad_all(Call &call, const Array *x_, Array *o_, const Array *number_, const Array *sizes_) {
    const long dims = call.size("sizes", sizes_, 0);
    const int64_t *sizes = call.in<int64_t>("sizes", sizes_, dims, 3);
    const Padding *all = reinterpret_cast<const Padding *>(sizes);
    long in = 1, out = 1;
    for (long d = 0; sizes && d < dims; ++d) {
        in = elements(in, all[d].in), out = elements(out, all[d].out);
        call.expect(all[d].before >= -(1L << 60) && all[d].before < 1L << 60, "paddings that can be counted");
    }
    call.expect(sizes && dims > 0, "a dimension");
    const U *x = call.in<U>("input", x_, in), *number = call.in<U>("number", number_, 1);
    U *o = call.out<U>("out", o_, out);
    call.run([=] { pad(all, dims, x, o, *number); });
}

}  // namespace
}  // namespace rl

// Of unsigned numbers as wide as the elements.
RL_EXPORT void rl_pad_bytes(Array *x, Array *o, Array *number, Array *sizes) {
    rl::Call call("pad");
    if (!call.is_array("out", o)) return;
    switch (o->descr->itemsize) {
        case 1: return rl::pad_all<uint8_t>(call, x, o, number, sizes);
        case 2: return rl::pad_all<uint16_t>(call, x, o, number, sizes);
        case 4: return rl::pad_all<uint32_t>(call, x, o, number, sizes);
        default: return rl::pad_all<uint64_t>(call, x, o, number, sizes);
    }
}
