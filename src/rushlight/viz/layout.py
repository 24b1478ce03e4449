"""Places for the boxes: layers by the longest way to an output, the order in a layer by the neighbours' places
(the method of Sugiyama, Tagawa and Toda), and coordinates that pull neighbours together without overlap."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from rushlight.viz.model import LEAF, SAVED, Box, Model

CHAR, SMALL_CHAR = 7.25, 6.05  # widths of a character of the two sizes of type
HEIGHT, PLAIN_HEIGHT, LAYER, GAP, MARGIN = 40.0, 26.0, 78.0, 22.0, 24.0
SWEEPS = 12


class Place:
    """A box in its layer, or a point where a long arrow crosses a layer."""

    __slots__ = ("above", "below", "box", "height", "layer", "order", "width", "x", "y")

    def __init__(self, layer: int, box: Box | None):
        self.layer, self.box, self.order = layer, box, 0.0
        self.above: list[Place] = []  # where arrows come from
        self.below: list[Place] = []
        self.x = self.y = 0.0
        if box is None:
            self.width, self.height = 26.0, 0.0
        else:
            self.width = max(len(box.title) * CHAR, len(box.detail) * SMALL_CHAR) + 22
            self.height = HEIGHT if box.detail else PLAIN_HEIGHT


class Layout:
    """Places of all boxes, and for each arrow the points on its way, from its source to its target."""

    def __init__(self, model: Model):
        rank(model)
        depth = max((box.rank for box in model.boxes), default=0)
        self.layers: list[list[Place]] = [[] for _ in range(depth + 1)]  # from the top: the sources
        self.places: dict[str, Place] = {}
        for box in model.boxes:
            place = self.places[box.key] = Place(depth - box.rank, box)
            self.layers[place.layer].append(place)
        self.ways = [(box, arrow, self.way(self.places[arrow.source.key], self.places[box.key]))
                     for box in model.boxes for arrow in box.inputs]  # fmt: skip
        order(self.layers)
        self.width, self.height = settle(self.layers)
        self.ends = spread(self.ways)

    def way(self, source: Place, target: Place) -> list[Place]:
        """The places that an arrow runs through, new ones in the layers between."""
        way = [source]
        for layer in range(source.layer + 1, target.layer):
            point = Place(layer, None)
            self.layers[layer].append(point)
            way.append(point)
        way.append(target)
        for a, b in pairwise(way):
            a.below.append(b)
            b.above.append(a)
        return way


def spread(ways: list[Any]) -> list[tuple[float, float]]:
    """For each arrow how far beside the middle of its boxes it leaves and arrives, so that arrows can be told apart."""
    arriving: dict[int, list[int]] = {}
    leaving: dict[tuple[int, int], list[int]] = {}
    for i, (_, _, way) in enumerate(ways):
        arriving.setdefault(id(way[-1]), []).append(i)
        leaving.setdefault((id(way[0]), id(way[-1])), []).append(i)
    ends = [[0.0, 0.0] for _ in ways]
    for group in arriving.values():
        group.sort(key=lambda i: (ways[i][2][-2].x, ways[i][1].saved))
        step = min(14.0, (ways[group[0]][2][-1].width - 24) / len(group))
        for k, i in enumerate(group):
            ends[i][1] = (k - (len(group) - 1) / 2) * step
    for group in leaving.values():
        group.sort(key=lambda i: ends[i][1])
        for k, i in enumerate(group):
            ends[i][0] = (k - (len(group) - 1) / 2) * 12
    return [(a, b) for a, b in ends]


def rank(model: Model) -> None:
    """The longest way of each box to an output: what feeds it lies at least one layer higher."""
    waiting = {box.key: 0 for box in model.boxes}
    for box in model.boxes:
        for arrow in box.inputs:
            waiting[arrow.source.key] += 1
    ready = [box for box in model.boxes if not waiting[box.key]]
    while ready:
        box = ready.pop()
        for arrow in box.inputs:
            source = arrow.source
            source.rank = max(source.rank, box.rank + 1)
            waiting[source.key] -= 1
            if not waiting[source.key]:
                ready.append(source)


def order(layers: list[list[Place]]) -> None:
    """Sort each layer by the mean place of the neighbours, downwards and upwards in turn."""
    for layer in layers:
        for i, place in enumerate(layer):
            place.order = float(i)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers[1:] if down else reversed(layers[:-1]):
            keys: dict[Place, float] = {}
            for place in layer:
                near = place.above if down else place.below
                keys[place] = sum(p.order for p in near) / len(near) if near else place.order
            layer.sort(key=keys.__getitem__)
            for i, place in enumerate(layer):
                place.order = float(i)


def settle(layers: list[list[Place]]) -> tuple[float, float]:
    """Give every place its coordinates; the width and height of all."""
    for depth, layer in enumerate(layers):
        x = 0.0
        for place in layer:
            place.x, place.y = x + place.width / 2, MARGIN + HEIGHT / 2 + depth * LAYER
            x += place.width + GAP
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            pull(layer, down, sweep >= SWEEPS)
    everything = [place for layer in layers for place in layer]
    left = min((place.x - place.width / 2 for place in everything), default=0.0)
    for place in everything:
        place.x += MARGIN - left
    right = max((place.x + place.width / 2 for place in everything), default=0.0)
    return right + MARGIN, 2 * MARGIN + HEIGHT + (len(layers) - 1) * LAYER


def strength(a: Place, b: Place) -> float:
    """How much two neighbours want to stand below each other: operations most, so that chains run straight down."""
    side = (LEAF, SAVED)
    return 1.0 if (a.box and a.box.kind in side) or (b.box and b.box.kind in side) else 8.0


def pull(layer: list[Place], down: bool, both: bool) -> None:
    """Move the places of a layer to the mean of their neighbours, as near as their widths allow.

    That is isotonic regression of the wished places less the room that those on the left need: neighbours that would
    overlap move as one block.
    """
    offsets, room = [], 0.0
    for i, place in enumerate(layer):
        if i:
            room += (layer[i - 1].width + place.width) / 2 + GAP
        offsets.append(room)
    blocks: list[list[Any]] = []  # [sum of wishes, weight, how many]
    for place, offset in zip(layer, offsets):
        near = place.above + place.below if both else place.above if down else place.below
        weights = [strength(place, p) for p in near]
        weight = sum(weights) or 0.1
        wish = sum(p.x * w for p, w in zip(near, weights)) / weight if near else place.x
        blocks.append([(wish - offset) * weight, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last)]
    i = 0
    for total, weight, count in blocks:
        for place, offset in zip(layer[i : i + count], offsets[i : i + count]):
            place.x = total / weight + offset
        i += count
