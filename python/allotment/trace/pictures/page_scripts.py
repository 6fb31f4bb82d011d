"""The JavaScript of a page: sizes as texts, texts of owners, and the holders of the memory at a moment."""

from typing import Final

#: A function that writes bytes with a unit, as ``format_size`` does.
FORMAT_SIZE: Final = """
function format_size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(bytes) >= 1024) { bytes /= 1024; unit += 1; }
  return (Number.isInteger(bytes) ? String(bytes) : bytes.toFixed(2)) + " " + units[unit];
}
"""

#: The text of a number of bytes under the pointer.
SIZE: Final = FORMAT_SIZE + "return format_size(value);"

#: The text of a group of blocks under the pointer.
OWNER: Final = "return owners.data.text[value];"

#: Lists the holders of the memory after the event that was clicked. Texts are set as texts, never as HTML.
HOLDERS: Final = """
const event = Math.floor(cb_obj.x);
const {start, end, requested, group} = blocks.data;
const found = new Map();
let held = 0;
for (let i = 0; i < start.length; i++) {
  if (start[i] <= event && (end[i] < 0 || end[i] > event)) {
    const former = found.get(group[i]) ?? {blocks: 0, bytes: 0};
    former.blocks += 1;
    former.bytes += requested[i];
    held += requested[i];
    found.set(group[i], former);
  }
}
let place = points.data.event.findIndex((last) => last >= event);
if (place < 0) { place = points.data.event.length - 1; }
const live = place < 0 ? 0 : points.data.live[place];
const table = document.createElement("table");
function add(...texts) {
  const line = table.insertRow();
  texts.forEach((text, index) => {
    const cell = line.insertCell();
    cell.textContent = text;
    if (index < 2) { cell.style.textAlign = "right"; cell.style.paddingRight = "1em"; }
  });
}
add("bytes", "blocks", "holder");
const sorted = [...found].sort((a, b) => b[1].bytes - a[1].bytes);
for (const [number, {blocks, bytes}] of sorted.slice(0, most)) {
  add(format_size(bytes), String(blocks), owners.data.text[number].split("\\n")[0]);
}
const rest = sorted.slice(most);
if (rest.length) {
  add(format_size(rest.reduce((sum, [, one]) => sum + one.bytes, 0)),
      String(rest.reduce((sum, [, one]) => sum + one.blocks, 0)), rest.length + " others");
}
if (shaded && live > held) { add(format_size(live - held), "", "blocks that are shown in grey, about"); }
const heading = document.createElement("b");
heading.textContent = "Holders after event " + event + ": " + format_size(live) + " live";
chosen.text = heading.outerHTML + table.outerHTML;
"""
