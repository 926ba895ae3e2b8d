(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Light or dark: what the system asks for, until the button is pressed.
  const button = one("#theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => {
    button.setAttribute("aria-pressed", String(dark()));
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", dark() ? "Switch to light colors" : "Switch to dark colors");
  };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    tell();
  });
  system.addEventListener("change", tell);
  tell();

  // Reliability: one group at a time, before, after or both.
  const select = one("#group");
  const show = (number) => {
    for (const figure of all("#diagrams figure[data-number]")) figure.toggleAttribute("data-away", figure.dataset.number !== number);
  };
  if (select) {
    select.addEventListener("change", () => show(select.value));
    show(select.value);
    for (const link of all("a[data-group]")) {
      link.addEventListener("click", () => {
        select.value = link.dataset.group;
        show(link.dataset.group);
        select.focus({ preventScroll: true });
      });
    }
  }
  const onChoice = (id, act) => {
    for (const input of all(`[data-switch="${id}"] input`)) {
      input.addEventListener("change", () => act(input.value));
      if (input.checked) act(input.value);
    }
  };
  const sides = (container) => (value) => {
    for (const part of all("[data-side]", one(container))) part.toggleAttribute("data-away", part.dataset.side !== value);
  };
  onChoice("series", (value) => (one("#diagrams").dataset.show = value));
  onChoice("worst-side", sides("#worst-tables"));

  // The table of groups: sorted by its heads, searched, and downloaded as it is sorted.
  const table = one("#group-table");
  if (table) {
    const body = table.tBodies[0];
    const lines = [...body.rows];
    const nameOf = (line) => {
      const name = one("th bdi", line);
      return name.title || name.textContent;
    };
    const find = one("#find");
    const only = one("#only-off");
    const more = one("#more");
    let whole = false;
    const isOff = (line) => Object.keys(line.dataset).some((key) => key.endsWith("Off"));
    const filter = () => {
      const wanted = find ? find.value.trim().toLowerCase() : "";
      const narrowed = wanted !== "" || (only && only.checked);
      let shown = 0;
      [...body.rows].forEach((line, place) => {
        const fits = (!wanted || nameOf(line).toLowerCase().includes(wanted)) && (!only || !only.checked || isOff(line));
        const visible = fits && (narrowed || whole || place <= Number(table.dataset.first));
        line.classList.toggle("later", !visible);
        if (visible) shown += 1;
      });
      if (more) more.parentElement.hidden = whole || narrowed;
      if (one("#found")) one("#found").textContent = narrowed ? `${shown} of ${lines.length} rows` : "";
    };
    if (find) find.addEventListener("input", filter);
    if (only) only.addEventListener("change", filter);
    if (more) {
      more.addEventListener("click", () => {
        whole = true;
        filter();
      });
    }
    const numberOf = (line, key) => {
      if (key === "rows") return Number(line.dataset.rows);
      const [which, what] = key.split("-");
      const value = (part) => Number(line.dataset[which + part] ?? NaN);
      if (what === "bias") return Math.abs(value("Bias"));
      if (what !== "near") return value(what[0].toUpperCase() + what.slice(1));
      return value("Low") > 0 ? value("Low") : value("High") < 0 ? -value("High") : 0;
    };
    for (const head of all("th[data-sort]", table)) {
      head.addEventListener("click", () => {
        const key = head.dataset.sort;
        const falls = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") !== "descending" : key !== "name";
        for (const other of all("th[data-sort]", table)) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", falls ? "descending" : "ascending");
        const sign = falls ? -1 : 1;
        const compare =
          key === "name"
            ? (a, b) => sign * nameOf(a).localeCompare(nameOf(b), undefined, { numeric: true })
            : (a, b) => sign * ((numberOf(a, key) || 0) - (numberOf(b, key) || 0));
        // All rows stay on top.
        body.append(lines[0], ...lines.slice(1).sort(compare));
        filter();
      });
    }
    const download = one("#download");
    if (download) {
      download.addEventListener("click", () => {
        // Before and after, or models, whose names the table has.
        const sidesThere = Object.keys(lines[0].dataset).filter((key) => key.endsWith("Bias")).map((key) => key.slice(0, -4));
        const named = (which) => table.dataset[which] ?? which;
        // A text that a spreadsheet would take for a formula gets a quote in front.
        const quoted = (text) => `"${(/^[=+@-]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
        const parts = ["bias", "low", "high", "off", ...(table.dataset.more ? table.dataset.more.split(",") : [])];
        const heads = ["group", "rows", "unit", ...sidesThere.flatMap((w) => parts.map((part) => quoted(`${named(w)}_${part}`)))];
        const rows = [...body.rows].map((line) => [
          quoted(nameOf(line)),
          line.dataset.rows,
          quoted(table.dataset.unit),
          ...sidesThere.flatMap((w) => parts.map((part) => line.dataset[w + part[0].toUpperCase() + part.slice(1)] ?? (part === "off" ? "0" : ""))),
        ]);
        const text = [heads.join(","), ...rows.map((row) => row.join(","))].join("\r\n");
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
        link.download = "groups.csv";
        link.click();
        URL.revokeObjectURL(link.href);
      });
    }
    filter();
  }

  // The map: a cell's numbers by pointing, tapping, or with the arrow keys.
  const detail = one("#detail");
  let at = null;
  const read = (cell) => {
    const label = cell.getAttribute("aria-label");
    if (!label) return;
    if (at) at.classList.remove("at");
    at = cell;
    cell.classList.add("at");
    const name = one("th bdi", cell.parentElement);
    const group = document.createElement("bdi");
    group.textContent = name.title || name.textContent;
    const strong = document.createElement("strong");
    strong.append(group);
    detail.replaceChildren(strong, `: ${label}.`);
  };
  const cellOf = (event) => event.target.closest("table.heat td[aria-label]");
  for (const table of all("table.heat")) {
    const cells = all("tbody tr", table).map((row) => all("td", row));
    const first = one("td[aria-label]", table);
    if (first) first.tabIndex = 0;
    const go = (cell) => {
      for (const other of all('td[tabindex="0"]', table)) other.tabIndex = -1;
      cell.tabIndex = 0;
      cell.focus();
    };
    table.addEventListener("pointerover", (event) => cellOf(event) && read(cellOf(event)));
    table.addEventListener("click", (event) => cellOf(event) && go(cellOf(event)));
    table.addEventListener("focusin", (event) => cellOf(event) && read(cellOf(event)));
    table.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      const cell = cellOf(event);
      if (!step || !cell) return;
      event.preventDefault();
      let row = cells.findIndex((line) => line.includes(cell));
      let column = cells[row].indexOf(cell);
      do {
        row += step[0];
        column += step[1];
      } while (cells[row]?.[column] && !cells[row][column].hasAttribute("aria-label"));
      if (cells[row]?.[column]) go(cells[row][column]);
    });
  }
  const maps = one("#maps");
  if (maps) {
    onChoice("map", (value) => {
      sides("#maps")(value);
      // The same cell, on the other side, if there is one.
      if (!at) return;
      const body = at.closest("tbody");
      const [row, column] = [[...body.rows].indexOf(at.parentElement), at.cellIndex];
      const twin = one(`[data-side="${value}"] tbody`, maps).rows[row]?.cells[column];
      if (twin && twin.hasAttribute("aria-label")) read(twin);
    });
  }
})();
