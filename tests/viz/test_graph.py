"""rushlight.viz.graph: what is in the picture, and where."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

import rushlight as torch
from rushlight import viz
from rushlight.viz.layout import GAP, Layout
from rushlight.viz.model import LEAF, MORE, NODE, OUTPUT, SAVED

SVG = "{http://www.w3.org/2000/svg}"


def leaf(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, requires_grad=True)


def boxes(picture: viz.Picture, kind: str) -> list[tuple[str, str]]:
    """(title, detail) of the boxes of a kind."""
    return [(box.title, box.detail) for box in picture.model.boxes if box.kind == kind]


def arrows(picture: viz.Picture) -> set[tuple[str, str, bool]]:
    """(from, to, whether it is what is kept)."""
    return {(a.source.title, box.title, a.saved) for box in picture.model.boxes for a in box.inputs}


def texts(picture: viz.Picture) -> list[str]:
    """All texts of the drawing, which must be XML."""
    return [t.text for t in ET.fromstring(picture.svg).iter(f"{SVG}text")]


def test_a_product() -> None:
    a, b = leaf(5), leaf(5)
    picture = viz.graph(a * b, {"a": a, "b": b})
    assert boxes(picture, OUTPUT) == [("output", "(5) float32")]
    assert boxes(picture, NODE) == [("MulBackward0", "(5) float32")]
    assert boxes(picture, LEAF) == [("a", "(5) float32"), ("b", "(5) float32")]
    assert boxes(picture, SAVED) == []  # what is kept are the leaves themselves
    assert arrows(picture) == {
        ("MulBackward0", "output", False), ("a", "MulBackward0", False), ("b", "MulBackward0", False),
        ("a", "MulBackward0", True), ("b", "MulBackward0", True),
    }  # fmt: skip
    assert {"a", "b", "MulBackward0", "output", "(5) float32"} <= set(texts(picture))
    assert repr(picture) == "<picture of a graph: 1 operation · 2 leaves>"


def test_what_is_kept_has_its_own_box_and_bytes() -> None:
    x = leaf(5)
    y = x * x
    picture = viz.graph(y * y)
    assert boxes(picture, SAVED) == [("self", "(5) float32")]
    assert repr(picture).endswith("1 tensor kept for backward, 20 B beyond the leaves>")
    assert not boxes(viz.graph(y * y, show_saved=False), SAVED)


def test_one_memory_has_one_box() -> None:
    x = leaf(4)
    y = x.exp()  # keeps its result, which the product keeps too
    assert len(boxes(viz.graph(y * x), SAVED)) == 1


def test_names_come_from_a_module() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    picture = viz.graph({"loss": model(torch.ones(4, 3)).sum()}, model)
    assert boxes(picture, LEAF) == [("0.weight", "(2, 3) float32"), ("0.bias", "(2) float32")]
    assert boxes(picture, OUTPUT) == [("loss", "scalar float32")]
    assert boxes(viz.graph(model(torch.ones(4, 3))), LEAF)[0][0] == "parameter"


def test_hooks_are_not_called() -> None:
    x = leaf(3)

    def unpack(value: torch.Tensor) -> torch.Tensor:
        raise AssertionError("unpacked")

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    assert boxes(viz.graph(y), SAVED) == [("result", "packed by hooks")]


def test_a_graph_that_was_freed_is_drawn_without_what_it_kept() -> None:
    y = leaf(3).exp().sum()
    y.backward()
    assert boxes(viz.graph(y), SAVED) == [] and len(boxes(viz.graph(y), NODE)) == 2


def test_custom_functions_and_several_outputs() -> None:
    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.exp())
            return x + 1, x + 2

        @staticmethod
        def backward(ctx, g, h):
            return g + h

    p, q = Pair.apply(leaf(2))
    picture = viz.graph((p, q))
    assert boxes(picture, "custom") == [("PairBackward", "2 outputs")]
    assert boxes(picture, SAVED) == [("saved 0", "(2) float32")]
    assert [title for title, _ in boxes(picture, OUTPUT)] == ["output 0", "output 1"]


def test_a_node_may_be_asked_for() -> None:
    y = leaf(2).exp()
    assert boxes(viz.graph(y.grad_fn), NODE) == [("ExpBackward0", "(2) float32")]


def test_a_leaf_alone() -> None:
    assert boxes(viz.graph(leaf(2)), LEAF) == [("leaf", "(2) float32")]


def test_nothing_overlaps_and_arrows_go_down() -> None:
    model = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model.train()
    layout = Layout(viz.graph(model(torch.ones(2, 3, 8)).sum(), model).model)
    for layer in layout.layers:
        for a, b in pairwise(layer):
            assert b.x - a.x >= (a.width + b.width) / 2 + GAP - 1e-6
    assert all(a.y < b.y for _, _, way in layout.ways for a, b in pairwise(way))
    assert all(0 < p.x - p.width / 2 and p.x + p.width / 2 < layout.width for p in layout.places.values())


def test_a_chain_stands_straight() -> None:
    y = leaf(2)
    for _ in range(6):
        y = y.exp()
    layout = Layout(viz.graph(y, show_saved=False).model)
    assert len({round(place.x) for place in layout.places.values()}) == 1


def test_very_deep_graphs_are_drawn_in_part() -> None:
    y = leaf(2)
    for _ in range(50_000):
        y = y.exp()
    picture = viz.graph(y, max_nodes=20)
    assert boxes(picture, MORE) == [("… 49,981 more", "raise max_nodes to see them")]
    assert len(boxes(picture, NODE)) == 20 and "50,000 operations · 1 leaf" in repr(picture)
    assert len(picture.svg) < 100_000
    with pytest.raises(ValueError, match="max_nodes"):
        viz.graph(y, max_nodes=0)


def test_hidden_nodes_close_no_cycle() -> None:
    cell, h = torch.nn.GRUCell(4, 6), torch.zeros(2, 6)
    for _ in range(3):
        h = cell(torch.ones(2, 4), h)
    for limit in range(1, 40):
        layout = Layout(viz.graph(h.sum(), cell, max_nodes=limit).model)
        assert all(a.y < b.y for _, _, way in layout.ways for a, b in pairwise(way))


def test_what_has_no_graph() -> None:
    with pytest.raises(ValueError, match="does not require grad"):
        viz.graph(torch.ones(2))
    with pytest.raises(TypeError, match="got int"):
        viz.graph(3)
    with pytest.raises(TypeError, match="output 1"):
        viz.graph((leaf(2), 3))


def test_files(tmp_path) -> None:
    a = leaf(2)
    picture = viz.graph(a.exp(), {'a "quoted" <name>': a})
    assert picture.save(tmp_path / "graph.svg").read_text().startswith("<svg")
    text = picture.save(str(tmp_path / "graph.dot")).read_text()
    assert text == picture.dot and text.startswith("digraph autograd {") and text.rstrip().endswith("}")
    assert r'label="a \"quoted\" <name>\n(2) float32"' in text and re.search(r"l\d+ -> n\d+;", text)
    assert picture._repr_svg_() == picture.svg and "a &quot;quoted&quot; &lt;name&gt;" in picture.svg
    with pytest.raises(ValueError, match=r"must end in \.svg"):
        picture.save(tmp_path / "graph.png")


def test_torchviz(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rushlight.compat.torchviz import make_dot

    a = leaf(2)
    drawn = make_dot(a.exp(), params={"a": a}, show_saved=True)
    assert drawn.source.startswith("digraph") and "ExpBackward0" in drawn.source
    assert drawn.render("g", directory=tmp_path).endswith("g.svg") and (tmp_path / "g.svg").exists()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="program dot"):
        drawn.render(str(tmp_path / "g"), format="png")


def test_every_dtype() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.complex64):
        x = torch.ones(2, dtype=dtype, requires_grad=True)
        picture = viz.graph((x * x * x).abs().sum())
        assert boxes(picture, LEAF)[0][1] == f"(2) {dtype}".replace("torch.", "")
