"""What the tests run in a child: it answers, prints, raises, hangs and dies as it is told."""

import os
import time
from typing import Any

print("a line that is no answer")


def answer(question: dict[str, Any]) -> Any:
    os.write(1, b"chatter from below Python\n")
    match question.get("do"):
        case "raise":
            raise LookupError("the shelf is empty")
        case "die":
            os._exit(3)
        case "sleep":
            time.sleep(60)
        case "list":
            return [1]
    return {"echo": question, "variables": sorted(os.environ), "process_id": os.getpid()}
