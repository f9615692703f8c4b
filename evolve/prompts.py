"""The one Jinja environment. A value that a template names and nobody gave is an error, never a blank.

Jinja is imported when a template is rendered, never before.
"""

from __future__ import annotations

from pathlib import Path

from evolve.resources import resource


def render(name: str, /, *, templates: Path | None = None, **values: object) -> str:
    """Render a packaged template.

    Args:
        name: path of the template under `prompts/`, with its ending.
        templates: a folder whose templates outrank the packaged ones, such as a workspace's own `prompts/`.
        values: what the template names.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folders = [*([templates] if templates else []), resource("prompts")]
    environment = Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  the templates make text for models and files, never HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name).render(**values)
