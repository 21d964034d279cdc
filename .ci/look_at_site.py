"""Looks at the built documentation as a reader would; `.ci/docs` calls it.

Links inside the site lead to pages and headings that exist; that needs no browser. With Chromium
pages open at two widths without errors on the console, pictures of them are kept beside the site,
the search finds `GEMClassifier`, and formulas are typeset.
"""

import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

PAGES = [
    "index.html",
    "quick_start.html",
    "guide/choose.html",
    "guide/early.html",
    "guide/tables.html",
    "guide/explain.html",
    "guide/lda.html",
    "auto_examples/index.html",
    "auto_examples/features/plot_digit_filters.html",
    "api/generated/eigenfeat.GEMClassifier.html",
    "benchmarks.html",
]
FORMULAS = "api/generated/eigenfeat.early.GaussianCompletion.html"
WIDTHS = {"wide": 1400, "narrow": 420}


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.anchors.update(named[key] for key in ("id", "name") if named.get(key))
        link = named.get("href") if tag == "a" else named.get("src")
        if link and not link.startswith(("http:", "https:", "mailto:", "data:", "javascript:")):
            self.links.append(link)


def broken_links(site):
    # The theme keeps templates among its static files.
    found = (path for path in site.rglob("*.html") if "_static" not in path.parts)
    pages = {path: Page(path.read_text()) for path in found}
    for path, page in pages.items():
        for link in page.links:
            where, anchor = urldefrag(link.split("?")[0])
            target = (path.parent / unquote(where)).resolve() if where else path
            target = target / "index.html" if target.is_dir() else target
            missing = not target.is_file()
            if missing or (target in pages and unquote(anchor) not in pages[target].anchors):
                yield f"{path.relative_to(site)}: {link}"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def browse(chromium, address, *, width, picture=None):
    """Return the page as it stands after its scripts, and what the console said."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={profile}", f"--window-size={width},1000", "--enable-logging=stderr",
            "--log-level=0", "--virtual-time-budget=8000",
            f"--screenshot={picture}" if picture else "--dump-dom", address,
        ]  # fmt: skip
        found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    console = [
        line
        for line in found.stderr.splitlines()
        if ":CONSOLE" in line and ("Uncaught" in line or "Error" in line)
    ]
    return found.stdout, console


def look(chromium, site):
    """Yield what is wrong with the site in a browser."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}"
    pictures = site.parent / "pictures"
    pictures.mkdir(exist_ok=True)
    for page in PAGES:
        for name, width in WIDTHS.items():
            picture = pictures / f"{page.replace('/', '-').removesuffix('.html')}-{name}.png"
            _, console = browse(chromium, f"{root}/{page}", width=width, picture=picture)
            yield from (f"{page}, {name}: {line}" for line in console)
            if not picture.is_file():
                yield f"{page}, {name}: no picture"
    found, console = browse(chromium, f"{root}/search.html?q=GEMClassifier", width=1400)
    yield from (f"search: {line}" for line in console)
    if "api/generated/eigenfeat.GEMClassifier.html" not in found:
        yield "search: GEMClassifier was not found"
    if (site / "_static" / "mathjax").is_dir():  # else formulas need another server
        found, console = browse(chromium, f"{root}/{FORMULAS}", width=1400)
        yield from (f"{FORMULAS}: {line}" for line in console)
        if "<mjx-container" not in found:
            yield f"{FORMULAS}: formulas were not typeset"
    server.shutdown()


def main():
    site = Path(sys.argv[1]).resolve()
    wrong = [*broken_links(site)]
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium:
        wrong += look(chromium, site)
    else:
        print("no Chromium: links were checked, pages were not opened")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(f"{len(wrong)} things are wrong with the site" if wrong else 0)


if __name__ == "__main__":
    main()
