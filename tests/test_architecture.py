"""The dependency direction, read from the imports themselves."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "evolve"

LAYERS = [
    {"errors", "rules", "disk", "rates", "dotted", "figures"},
    {"records", "named_files", "clock", "lock", "scratch"},
    {"protocols", "resources", "prompts", "secrets", "models.settings", "gate", "predictions"},
    {"config", "harness", "environments", "models", "repository", "traces", "store", "canaries"},
    {"agent", "classify", "evidence", "freeze", "seal", "ruler", "progress", "workspace", "proposers"},
    {"archive"},
    {"rollout"},
    {"assembly", "holding", "extend", "loop", "evaluate"},
    {"report", "doctor", "redteam", "bench", "demonstration"},
    {"cli"},
]


def modules() -> list[str]:
    paths = (p.relative_to(PACKAGE).with_suffix("") for p in PACKAGE.rglob("*.py"))
    return sorted(".".join(p.parts).removesuffix(".__init__") for p in paths if p.name not in ("__init__", "__main__"))


def layer_of(module: str) -> int | None:
    """Return the layer of the longest declared prefix of a module name; None where none is declared."""
    ranked = {name: i for i, names in enumerate(LAYERS) for name in names}
    parts = module.split(".")
    prefixes = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((ranked[p] for p in prefixes if p in ranked), None)


def tree_of(module: str) -> ast.Module:
    path = PACKAGE / (module.replace(".", "/") + ".py")
    path = path if path.exists() else PACKAGE / module.replace(".", "/") / "__init__.py"
    return ast.parse(path.read_text())


def imports_of(module: str) -> set[str]:
    tree = tree_of(module)
    named = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    plain = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    return {name.removeprefix("evolve.") for name in named | plain if name.startswith("evolve.")}


@pytest.mark.parametrize("module", modules())
def test_module_imports_only_from_its_own_layer_or_below(module: str) -> None:
    """A module imports nothing from a higher layer, and every module has a declared layer."""
    mine = layer_of(module)
    assert mine is not None, f"{module} has no layer: declare it in LAYERS"
    higher = {name for name in imports_of(module) if (layer_of(name) or 0) > mine}
    assert not higher


STARTERS = ("subprocess.Popen", "asyncio.create_subprocess_exec", "self._repository.git.execute")
"""What starts a program that may be running when Ctrl-C is pressed; `subprocess.run` is for short questions."""


def test_programs_that_are_started_are_in_sessions_of_their_own() -> None:
    """A terminal's Ctrl-C goes to all of its session: a worker, a server or a git that died of it would be a result."""
    calls = [
        (ast.unparse(node.func), f"{module}:{node.lineno}", {f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords})
        for module in modules()
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Call)
    ]
    started = [call for call in calls if call[0] in STARTERS]
    assert [place for _, place, keywords in started if "start_new_session=True" not in keywords] == []
    assert {name for name, _, _ in started} == set(STARTERS)
