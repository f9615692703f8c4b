"""`evolve demo`: the whole way, on recorded completions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evolve.cli.options import AsJson


def demo(
    into: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A new folder.", show_default="a temporary one, kept")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask a real model; needs --model.")] = False,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="FILE", help="A GGUF file for --live.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run everything once: init, run, accept, freeze, evaluate, report.

    It plays the built-in environments. Completions are recordings of a real local model, so it needs no key, no
    network and no model. With --live the same runs ask a model served by llama.cpp.
    """
    from evolve.cli.demonstration import demo_text, run_demo
    from evolve.cli.output import show

    if live and model is None:
        raise typer.BadParameter("--live needs --model FILE.gguf")
    if model is not None and not live:
        raise typer.BadParameter("--model goes with --live; without it the demo replays recordings and asks no model")
    document = run_demo(into, model_path=model)
    show(document.model_dump(mode="json"), demo_text(document), as_json=as_json)
