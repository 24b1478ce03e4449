// Convolutions of 3 x 3 places, a step apart, by fewer products; see winograd.cpp.
#pragma once
#include "windows.h"

namespace rl {

// Whether all was done: a direct sum is faster for some sizes, and what it takes where numbers are not finite.
bool conv_by_points(const Windows &s, const float *x, const float *w, float *y);
bool conv_weight_by_points(const Windows &s, const float *g, const float *x, float *dw);

// Bytes that they take for themselves.
long points_room(const Windows &s);
long weight_points_room(const Windows &s);

}  // namespace rl
