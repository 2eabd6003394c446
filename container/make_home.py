"""Lay out the home folder of the image as apache/rocketmq's image has it.

    python3 make_home.py FOLDER

`rocketmq-<version>` is there under the name of every version that has an image, since people mount
their broker.conf into that folder.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

CURRENT = "5.5.0"
VERSIONS = (
    *("4.9.4", "4.9.6", "4.9.7", "4.9.8", "5.0.0", "5.1.0", "5.1.1", "5.1.3", "5.1.4"),
    *("5.2.0", "5.3.0", "5.3.1", "5.3.2", "5.3.3", "5.3.4", "5.4.0"),
)
HERE = Path(__file__).parent


def main(home: Path) -> None:
    """Make the folders, copy the scripts, link the versions."""
    root = home / f"rocketmq-{CURRENT}"
    for folder in (root / "bin", root / "conf", home / "store", home / "logs"):
        folder.mkdir(parents=True)
    for script in (HERE / "bin").iterdir():
        shutil.copyfile(script, root / "bin" / script.name)
    (root / "conf" / "broker.conf").write_text(
        "brokerClusterName = DefaultCluster\nbrokerName = broker-a\nbrokerId = 0\n",
        encoding="utf-8",
    )
    for version in VERSIONS:
        (home / f"rocketmq-{version}").symlink_to(root.name)
    for path in (home, *home.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o775 if path.is_dir() or path.parent.name == "bin" else 0o664)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
