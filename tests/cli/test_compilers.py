"""torch.jit and torch.compiler, where nothing is compiled: what is decorated stays what it is."""

import pytest

import rushlight as torch


class Double(torch.nn.Module):
    """A module in the style of TorchScript."""

    factor: torch.jit.Final[int] = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Twice the input."""
        return self.twice(x) if torch.jit.is_scripting() or torch.jit.is_tracing() else self.factor * x

    @torch.jit.export
    def twice(self, x: torch.Tensor) -> torch.Tensor:
        """The same for TorchScript."""
        return x + x

    @torch.jit.unused
    def unused(self) -> None:
        """Not of use to TorchScript."""


def test_what_is_scripted_or_traced_stays_what_it_is() -> None:
    model, x = Double().eval(), torch.ones(2)
    assert torch.jit.script(model) is model and torch.jit.trace(model, (x,), strict=False) is model
    assert torch.jit.trace_module(model, {"forward": x}) is model and torch.jit.freeze(model) is model
    assert torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.script(model))) is model
    assert torch.jit.script(Double) is Double and model(x).tolist() == [2, 2]
    for decorate in (torch.jit.script, torch.jit.export, torch.jit.unused, torch.jit.ignore, torch.jit.ignore(drop=True),
                     torch.jit.script_if_tracing, torch.jit.interface, torch.jit.script_method):  # fmt: skip
        assert decorate(len) is len
    assert torch.jit.annotate(int, 3) == 3 and torch.jit.Attribute(3, int).value == 3


def test_classes_of_torchscript_can_be_asked_for() -> None:
    assert not isinstance(Double(), torch.jit.ScriptModule) and not isinstance(len, torch.jit.ScriptFunction)
    assert isinstance(torch.jit.ScriptModule(), torch.nn.Module) and issubclass(torch.jit.Error, RuntimeError)
    with pytest.raises(TypeError, match="ScriptFunction"):
        torch.jit.ScriptFunction()


def test_files_of_torchscript_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"torch\.jit\.save: Double .* torch\.save"):
        torch.jit.save(Double(), "double.pt")
    with pytest.raises(NotImplementedError, match=r"torch\.jit\.load: 'double\.pt'"):
        torch.jit.load("double.pt")
    with pytest.raises(RuntimeError, match="training mode"):
        torch.jit.freeze(Double())
    with pytest.raises(RuntimeError, match="expected a function or a bool, got 3"):
        torch.jit.ignore(3)


def test_compiler_settings_have_no_effect() -> None:
    compiler = torch.compiler
    assert not compiler.is_compiling() and not compiler.is_dynamo_compiling() and not compiler.is_exporting()
    assert compiler.compile is torch.compile and "inductor" in compiler.list_backends()
    assert compiler.reset() is None and compiler.cudagraph_mark_step_begin() is None
    model = Double()
    assert compiler.disable(model) is model and compiler.disable()(len) is len
    assert compiler.disable(recursive=False, reason="why not")(len) is len
    assert compiler.allow_in_graph(len) is compiler.assume_constant_result(len) is len
    with compiler.set_stance("force_eager"):
        assert compiler.set_stance("default")(len) is len
    with pytest.raises(TypeError, match="got int"):
        compiler.disable(3)


def test_names_that_are_not_there_fail_by_name() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        torch.jit.no_such_name
