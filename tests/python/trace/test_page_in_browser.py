"""A page in a headless Chromium: it needs no network, shows blocks under the pointer, zooms, and tells holders."""

from pathlib import Path

import pytest

from allotment.trace import ReplayOptions, read_columns, timeline
from allotment.trace.pictures import write_page
from support.browser import Browser, find_browser
from support.traces.trace_files import GNN

MIB = 1 << 20

#: Text of all tooltips, wherever they are in shadow trees.
TOOLTIPS = """
(() => {
  const texts = [];
  const walk = (node) => {
    if (node.classList?.contains("bk-Tooltip") && node.getBoundingClientRect().width) {
      texts.push(node.shadowRoot.textContent);
    }
    for (const child of [...(node.shadowRoot?.children ?? []), ...node.children]) { walk(child); }
  };
  walk(document.body);
  return texts.join("|");
})()
"""


@pytest.mark.skipif(
    find_browser() is None, reason="needs Chromium: Debian's chromium or chromium-headless-shell"
)
def test_a_browser_shows_the_page_and_answers_the_mouse(tmp_path: Path) -> None:
    write_page(tmp_path / "p.html", [read_columns(GNN)], ReplayOptions(24 * MIB))
    with Browser(tmp_path / "p.html", tmp_path / "profile") as browser:
        model = "Bokeh.documents[0].get_model_by_name"
        view = f"Bokeh.index.find_one({model}('addresses'))"
        browser.wait_for(
            "typeof Bokeh !== 'undefined' && Bokeh.documents.length && Bokeh.documents[0].is_idle"
        )
        box = browser.evaluate(
            f"(() => {{ const r = {view}.el.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }})()"
        )
        x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
        # The first block of all is live for most of the program: the pointer is on it low in the picture.
        for height in range(30, int(box[3]) - 30, 12):
            browser.mouse("mouseMoved", x, box[1] + box[3] - height)
            text = browser.evaluate(f"new Promise((done) => setTimeout(() => done({TOOLTIPS}), 60))")
            if "requested, chunk of" in text:
                break
        assert "requested, chunk of" in text
        assert "blocks of" in text
        before = browser.evaluate(f"{model}('addresses').x_range.end - {model}('addresses').x_range.start")
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300)
        browser.wait_for(f"{model}('addresses').x_range.end - {model}('addresses').x_range.start < {before}")
        # Curves and blocks show the same events.
        assert browser.evaluate(f"{model}('memory').x_range === {model}('addresses').x_range")
        for kind in ("mousePressed", "mouseReleased"):
            browser.mouse(kind, x, y, button="left", clickCount=1)
        chosen = browser.wait_for(
            f"{model}('chosen').text.startsWith('<b>Holders after event') && {model}('chosen').text"
        )
        event = int(chosen.split("Holders after event ")[1].split(":")[0])
        live = timeline(read_columns(GNN), ReplayOptions(24 * MIB)).live
        nearby = {f"{nbytes / MIB:.2f} MiB live" for nbytes in live[event - 2 : event + 3]}
        assert any(text in chosen for text in nearby), (chosen[:80], nearby)
        assert browser.problems == []
