"""docs/compatibility.md says what is declared, no more and no less."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compatibility.md"


def test_the_table_of_request_codes_is_the_registries_own():
    script = runpy.run_path(str(ROOT / "scripts" / "request_codes.py"))
    page = PAGE.read_text(encoding="utf-8")
    assert script["BEGIN"] in page
    assert script["END"] in page
    assert page == script["replaced"](page), "run: python scripts/request_codes.py --write"
