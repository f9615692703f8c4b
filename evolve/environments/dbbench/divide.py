"""Writes the open half of DBBench's standard tasks to a file of its own, so that a run never reads the other half.

    python -m evolve.environments.dbbench.divide FOLDER

FOLDER holds standard.jsonl; standard_open.jsonl is written beside it and has one content only, which is pinned.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from evolve.environments.data import BenchmarkData
from evolve.environments.dbbench.benchmark import BENCHMARK, OPEN, STANDARD
from evolve.errors import ConfigError, UserError

OPEN_INDICES = (
    *(3, 5, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 23, 25, 26, 27, 29, 33, 35, 36, 38, 40, 41, 42, 46, 48, 49, 51),
    *(52, 53, 54, 57, 61, 63, 65, 67, 69, 70, 71, 72, 76, 77, 79, 80, 84, 85, 87, 89, 92, 94, 95, 97, 100, 101, 102),
    *(103, 105, 106, 107, 110, 111, 113, 118, 120, 122, 124, 130, 135, 136, 137, 138, 139, 141, 146, 148, 150, 152),
    *(154, 155, 156, 161, 162, 164, 165, 167, 169, 170, 172, 174, 176, 177, 180, 181, 183, 184, 185, 186, 193, 195),
    *(196, 198, 199, 203, 204, 206, 214, 216, 219, 220, 222, 223, 224, 229, 230, 233, 234, 236, 237, 238, 240, 241),
    *(242, 243, 245, 246, 249, 250, 251, 252, 254, 258, 259, 261, 262, 264, 266, 271, 273, 276, 277, 278, 281, 282),
    *(284, 285, 287, 288, 290, 291, 293, 295, 297),
)


def divide(folder: Path) -> Path:
    """Write the open half and return its path.

    Raises:
        ConfigError: standard.jsonl is not there, or what was written is not the half that is pinned.
    """
    data = BenchmarkData(BENCHMARK, folder)
    try:
        lines = data.read(STANDARD).decode().splitlines()
        entries = [{"index": index, **json.loads(lines[index])} for index in OPEN_INDICES]
    except (ValueError, TypeError, IndexError) as error:
        raise ConfigError(f"{folder / STANDARD} does not hold the 300 standard tasks: {error}") from error
    text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    (folder / OPEN).write_text(text, "utf-8")
    data.read(OPEN)
    return folder / OPEN


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m evolve.environments.dbbench.divide FOLDER")
    try:
        print(divide(Path(sys.argv[1])))
    except UserError as error:
        sys.exit(str(error))
