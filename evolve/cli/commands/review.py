"""`evolve review`: a person looks at what the gate accepted."""

from __future__ import annotations

from evolve.cli.options import AsJson, InWorkspace


def review(workspace: InWorkspace = None, as_json: AsJson = False) -> None:
    """Go through the candidates that the gate accepted: patch, hypothesis, pattern, evidence; then decide.

    Off a terminal, and with --json, they are listed and nothing is asked.
    """
    from evolve.cli.candidate_text import candidate_text
    from evolve.cli.output import is_interactive, show
    from evolve.cli.place import find_place
    from evolve.cli.reviewing import review_each, waiting

    place = find_place(workspace)
    documents = waiting(place)
    if documents and is_interactive() and not as_json:
        review_each(place, documents)
        return
    texts = [f"{candidate_text(document, is_brief=True)}\n\n{document['diff']}" for document in documents]
    decide = f"Decide with `{place.then('accept', 'ID')}` or `{place.then('reject', 'ID')}`."
    hint = decide if texts else "No candidate waits for review."
    show({"waiting": documents}, "\n\n".join([*texts, hint]), as_json=as_json)
