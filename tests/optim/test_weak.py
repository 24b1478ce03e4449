"""Weak references and dictionaries by identity."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest

import rushlight as torch
from rushlight.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


@pytest.fixture(autouse=True)
def by_counts_alone():
    gc.disable()
    yield
    gc.enable()


def test_references_compare_by_identity():
    p, q = torch.ones(2), torch.ones(2)
    a, b, c = WeakIdRef(p), WeakIdRef(p), WeakIdRef(q)
    assert a == b != c and hash(a) == hash(b) == id(p) and a() is p
    assert a != p and a != 3
    del p
    assert a() is None and a == a and a != b
    ref = TensorWeakRef(q)
    assert ref() is q
    del q
    assert ref() is None


def test_a_dictionary_of_tensors():
    p, q = torch.ones(2), torch.ones(2)
    d = WeakTensorKeyDictionary({p: 1, q: 2})
    assert len(d) == 2 and d[p] == 1 and p in d and 3 not in d and torch.ones(2) not in d
    assert [k is x for k, x in zip(d, (p, q), strict=True)] == [True, True]
    assert list(d.values()) == [1, 2] and [r() is x for r, x in zip(d.keyrefs(), (p, q), strict=True)] == [True] * 2
    assert d.get(torch.ones(2)) is None and d.setdefault(p, 9) == 1
    assert d.pop(q) == 2 and d.pop(q, 5) == 5 and len(d) == 1
    with pytest.raises(KeyError):
        d[q]
    d[q] = 3
    assert d.popitem()[1] in (1, 3) and len(d) == 1
    d.update({p: 1, q: 2})
    del d[p]
    assert len(d) == 1
    d.clear()
    assert not d and repr(d).startswith("<WeakIdKeyDictionary at")


def test_entries_go_with_their_keys():
    p, q = torch.ones(2), torch.ones(2)
    value = torch.ones(3)
    gone = weakref.ref(value)
    d = WeakIdKeyDictionary({p: value, q: 2})
    del value
    assert gone() is not None
    del p
    assert gone() is None and len(d) == 1 and next(iter(d)) is q


def test_keys_may_die_while_one_iterates():
    keys = [torch.ones(1) for _ in range(5)]
    d = WeakIdKeyDictionary({k: i for i, k in enumerate(keys)})
    seen = []
    for key in d:
        seen.append(d[key])
        keys.clear()
        del key
    assert seen == [0]


def test_dictionaries_die_too():
    p = torch.ones(1)
    d = WeakIdKeyDictionary({p: 1})
    gone = weakref.ref(d)
    del d
    assert gone() is None
    del p


def test_copies_and_unions():
    p, q = torch.ones(1), torch.ones(1)
    d = WeakIdKeyDictionary({p: [1]})
    again, deep = d.copy(), copy.deepcopy(d)
    assert again == d and again[p] is d[p]
    assert deep[p] == [1] and deep[p] is not d[p]
    both = d | {q: 2}
    assert (len(both), both[q], len(d)) == (2, 2, 1)
    assert len({q: 2} | d) == 2 and ({p: 0} | d)[p] == [1]
    d |= {q: 5}
    assert d[q] == 5 and d != again and d == {p: [1], q: 5} and d != 3
    with pytest.raises(TypeError):
        d | 3
    with pytest.raises(TypeError):
        3 | d
