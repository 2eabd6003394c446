"""docs/configuration.md says what is declared, no more and no less."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_page_is_what_the_declarations_say():
    script = runpy.run_path(str(ROOT / "scripts" / "configuration.py"))
    page = script["PAGE"].read_text(encoding="utf-8")
    assert page == script["render"](), "run: python scripts/configuration.py --write"


def test_no_default_is_this_machines_own():
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert "| `brokerName` | String | `(host name)` | ✔ at start |" in page
    assert "| `storePathRootDir` | String | `(home)/store` | ✔ at start |" in page
    assert "by the number of processors" in page
