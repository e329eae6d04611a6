// Markdown as models write it, parsed into plain data. view.mjs makes elements of it. No DOM.
//   block: { kind: "paragraph" | "heading" | "code" | "list" | "quote" | "table" | "rule", ... }
//   inline: a text, or { kind: "code" | "strong" | "em" | "del" | "link", ... }

const kMaxDepth = 8;  // of lists and quotes inside each other
const kFence = /^(\s*)(`{3,}(?=[^`]*$)|~{3,})\s*(\S*)/;
const kHeading = /^ {0,3}(#{1,6})\s+(.*)/;
const kRule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)/;
const kColumns = /^[\s|:-]+$/;

const kInline = new RegExp([
  "(`+)(?!`)(.+?)(?<!`)\\1(?!`)",
  "\\*\\*(?=\\S)((?:[^*]|\\*(?!\\*)|\\*(?=\\*\\*(?!\\*)))+)\\*\\*(?!\\*)",
  "\\*([^*\\s][^*]*)\\*",
  "(?<!\\w)_([^_\\s][^_]*)_(?!\\w)",
  "~~([^~]+)~~",
  "\\[([^\\[\\]]*)\\]\\((https?://[^\\s()]+)\\)",
  "(https?://[^\\s<>()\"'`*]*[^\\s<>()\"'`*.,;:!?])",
].join("|"), "gs");

const link = (inline, address) => ({ kind: "link", inline, address });

export function parseInline(text) {
  const out = [];
  let from = 0;
  for (const found of text.matchAll(kInline)) {
    if (found.index > from) out.push(text.slice(from, found.index));
    from = found.index + found[0].length;
    const [, , code, strong, star, low, del, name, address, bare] = found;
    if (code !== undefined) out.push({ kind: "code", text: code });
    else if (strong !== undefined) out.push({ kind: "strong", inline: parseInline(strong) });
    else if (star ?? low) out.push({ kind: "em", inline: parseInline(star ?? low) });
    else if (del !== undefined) out.push({ kind: "del", inline: parseInline(del) });
    else if (address !== undefined) out.push(link([name || address], address));
    else out.push(link([bare], bare));
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

const cellsOf = (line) =>
  line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replace("\\|", "|"));

const isTable = (line, next) =>
  line.includes("|") && next !== undefined && next.includes("-") && next.includes("|") &&
  kColumns.test(next);

const beginsBlock = (line) =>
  kFence.test(line) || kHeading.test(line) || kRule.test(line) || kQuote.test(line) ||
  kItem.test(line);

// Lines of one parse, read from the front.
class Blocks {
  #at = 0;
  constructor(lines, depth) {
    this.lines = lines;
    this.depth = depth;
  }
  get line() {
    return this.lines[this.#at];
  }
  parse() {
    const out = [];
    while (this.#at < this.lines.length) {
      if (this.line.trim() === "") ++this.#at;
      else out.push(this.block());
    }
    return out;
  }
  block() {
    if (kFence.test(this.line)) return this.code();
    const heading = kHeading.exec(this.line);
    if (heading !== null) {
      ++this.#at;
      const text = heading[2].replace(/\s#+\s*$/, "");
      return { kind: "heading", level: heading[1].length, inline: parseInline(text) };
    }
    if (kRule.test(this.line)) {
      ++this.#at;
      return { kind: "rule" };
    }
    if (this.depth < kMaxDepth && kQuote.test(this.line)) return this.quote();
    if (this.depth < kMaxDepth && kItem.test(this.line)) return this.list();
    if (isTable(this.line, this.lines[this.#at + 1])) return this.table();
    return this.paragraph();
  }
  // A fence without an end goes to the end of the text: the model still writes it.
  code() {
    const [, indent, fence, language] = kFence.exec(this.line);
    const lines = [];
    for (++this.#at; this.#at < this.lines.length; ++this.#at) {
      const line = this.line.trim();
      if (line.startsWith(fence) && line === fence[0].repeat(line.length)) {
        ++this.#at;
        break;
      }
      lines.push(this.line.startsWith(indent) ? this.line.slice(indent.length) : this.line);
    }
    return { kind: "code", language, text: lines.map((line) => `${line}\n`).join("") };
  }
  quote() {
    const lines = [];
    for (; kQuote.test(this.line ?? ""); ++this.#at) lines.push(this.line.replace(kQuote, ""));
    return { kind: "quote", blocks: new Blocks(lines, this.depth + 1).parse() };
  }
  list() {
    const [, indent, marker] = kItem.exec(this.line);
    const ordered = marker.length > 1;
    const items = [];
    for (let item = kItem.exec(this.line); item !== null; item = kItem.exec(this.line ?? "")) {
      if (item[1].length < indent.length || item[2].length > 1 !== ordered) break;
      ++this.#at;
      items.push(new Blocks([item[3], ...this.itemLines(indent.length)], this.depth + 1).parse());
    }
    return { kind: "list", ordered, start: ordered ? Number.parseInt(marker, 10) : 1, items };
  }
  // The lines below an item: those that are deeper, and those that continue its paragraph.
  itemLines(indent) {
    const lines = [];
    for (; this.#at < this.lines.length; ++this.#at) {
      const line = this.line, deep = line.search(/\S/);
      if (deep < 0) {
        const next = this.lines.slice(this.#at + 1).find((one) => one.trim() !== "");
        if (next === undefined || next.search(/\S/) <= indent) break;
      } else if (deep <= indent && (beginsBlock(line) || lines.at(-1)?.trim() === "")) {
        break;
      }
      lines.push(line.slice(Math.min(Math.max(deep, 0), indent + 2)));
    }
    while (this.line?.trim() === "" && kItem.test(this.lines[this.#at + 1] ?? "")) ++this.#at;
    return lines;
  }
  table() {
    const head = cellsOf(this.line).map(parseInline);
    const align = cellsOf(this.lines[this.#at + 1]).map((cell) =>
      cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left");
    const rows = [];
    for (this.#at += 2; this.line?.includes("|"); ++this.#at)
      rows.push(cellsOf(this.line).slice(0, head.length).map(parseInline));
    return { kind: "table", head, align, rows };
  }
  paragraph() {
    const lines = [this.line];
    for (++this.#at; this.#at < this.lines.length; ++this.#at) {
      if (this.line.trim() === "" || beginsBlock(this.line)) break;
      if (isTable(this.line, this.lines[this.#at + 1])) break;
      lines.push(this.line);
    }
    return { kind: "paragraph", inline: parseInline(lines.join("\n").trim()) };
  }
}

export const parseMarkdown = (text) => new Blocks(text.split("\n"), 0).parse();
