"""The source model: whether it answers with calls."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.doctor.finding import Finding
from evolve.doctor.refusals import model_name
from evolve.errors import EvolveError
from evolve.models.create import create_model, probe_protocol
from evolve.models.settings import ModelSettings

PROBE_TIMEOUT_S = 60.0


async def model(settings: ModelSettings, environ: Mapping[str, str], *, is_offline: bool) -> Finding:
    """Make a model that nothing is refused of, and ask it for one tiny call, where that is possible and allowed."""
    name = model_name(settings)
    model = create_model(settings.model_copy(update={"retries": 0, "timeout_s": PROBE_TIMEOUT_S}), environ=environ)
    if is_offline or settings.kind in ("recorded", "scripted"):
        return Finding(name=name, status="ok", detail=f"{settings.kind}; not asked")
    try:
        answer = await probe_protocol(model)
    except EvolveError as error:
        mend = "mend what the message names, then `evolve doctor` again"
        return Finding(name=name, status="missing", detail=str(error), mend=mend, blocks=True)
    finally:
        await model.close()
    if answer == "tools":
        return Finding(name=name, status="ok", detail=f"answers with calls (protocol {settings.protocol})")
    wrong = "its calls do not parse at the endpoint" if answer == "malformed" else "it answers a call as text"
    other = "text" if settings.protocol == "tools" else "tools"
    mend = f'try protocol = "{other}" under [model] in evolve.toml'
    return Finding(name=name, status="warn", detail=f"{wrong} (protocol {settings.protocol})", mend=mend)
