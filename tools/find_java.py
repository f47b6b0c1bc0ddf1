"""Print the JAVA_HOME of a JDK that Spark can run on, or say in one sentence what to install.

Looks at JAVA_HOME, then at `java` on the PATH, then in the usual places of Linux and macOS, and takes the
first that is new enough. Needs nothing but Python's standard library.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST = 17  # Spark 4 runs on Java 17 and newer
ADVICE = (
    f"install openjdk-{OLDEST}-jre-headless (Debian/Ubuntu: apt-get install openjdk-{OLDEST}-jre-headless; "
    f"macOS: brew install openjdk@{OLDEST}) or set JAVA_HOME."
)
USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)
MACOS_TOOL = "/usr/libexec/java_home"  # names the newest of the system's homes
# Below `brew --prefix`: macOS's java_home does not list what Homebrew installs.
HOMEBREW_PLACE = "opt/openjdk*/libexec/openjdk.jdk/Contents/Home"


def run(*command: str) -> str:
    """What a command prints on either stream; nothing if it cannot run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr


def major_version(home: Path) -> int | None:
    """The Java version of a home, 8 for "1.8"; None if there is no Java that runs."""
    found = re.search(r'version "(?:1\.)?(\d+)', run(str(home / "bin" / "java"), "-version"))
    return int(found[1]) if found else None


def home_on_path() -> Path | None:
    """The home of the `java` on the PATH, as it names it itself: the command may be a link or a script."""
    java = shutil.which("java")
    if java is None:
        return None
    found = re.search(r"java\.home = (.+)", run(java, "-XshowSettings:properties", "-version"))
    return Path(found[1].strip()) if found else None


def usual_homes() -> Iterator[Path]:
    """Homes where the system's tools and package managers put them."""
    if Path(MACOS_TOOL).exists() and (home := run(MACOS_TOOL, "-v", f"{OLDEST}+").strip()):
        yield Path(home.splitlines()[0])
    patterns = list(USUAL_PLACES)
    if shutil.which("brew") and (prefix := run("brew", "--prefix").strip()):
        patterns.append(f"{prefix}/{HOMEBREW_PLACE}")
    for pattern in patterns:
        homes = [home for home in Path("/").glob(pattern.lstrip("/")) if (home / "bin" / "java").exists()]
        # Oldest first: the nearest to the version that Spark is tested on most.
        yield from sorted(homes, key=lambda home: (major_version(home) or 0, str(home)))


def candidates() -> Iterator[tuple[str, Path]]:
    """Every home worth asking, in order, with the words that say where it was found."""
    if named := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(named)
    if (on_path := home_on_path()) is not None:
        yield "the java on the PATH", on_path
    for home in usual_homes():
        yield str(home), home


def main() -> int:
    """Print the home and return 0, or print one sentence to stderr and return 1."""
    too_old = ""
    for where, home in candidates():
        version = major_version(home)
        if version is not None and version >= OLDEST:
            print(home)
            return 0
        if version is not None and not too_old:
            too_old = f" ({where} is version {version})"
    print(f"Tocsin needs a JDK {OLDEST} or newer{too_old}: {ADVICE}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
