// Convolutions without unfolding, where outputs lie in rows that fill vectors; see direct.cpp.
#pragma once
#include "windows.h"

namespace rl {

// Whether all was done: where many outputs are made of what is unfolded once, or rows do not fill vectors, that is faster.
template <class T> bool conv_direct(const Windows &s, const T *x, const T *w, T *y);
template <class T> bool conv_weight_direct(const Windows &s, const T *g, const T *x, T *dw);

// Bytes that they take for themselves; of the second, whether it does the work.
template <class T> long direct_room(const Windows &s);
template <class T> bool weight_direct_room(const Windows &s, long &room);

}  // namespace rl
