"use strict";
(() => {
  // ---- tables: a button in each head sorts by its column, unknown values last --------------
  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  const sort = (head) => {
    const table = head.closest("table"), body = table.tBodies[0];
    const column = head.cellIndex, numbers = head.classList.contains("number");
    const was = head.getAttribute("aria-sort");
    const down = was ? was === "ascending" : numbers;
    const key = (row) => row.cells[column].dataset.order;
    const rows = [...body.rows];
    const known = rows.filter((row) => key(row) !== undefined);
    const unknown = rows.filter((row) => key(row) === undefined);
    known.sort((a, b) => (down ? -1 : 1) * compare(key(a), key(b)));
    body.append(...known, ...unknown);
    table.querySelectorAll("th").forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    document.getElementById("sorted").textContent =
      `sorted by ${head.textContent.trim()}, ${down ? "largest" : "smallest"} first`;
  };
  document.querySelectorAll(".sortable th button").forEach((button) => {
    button.addEventListener("click", () => sort(button.closest("th")));
  });

  // ---- plots: in the colours of the page, light on paper ----------------------------------
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const paint = (isDark) => {
    const ink = isDark ? "#e6eaee" : "#1b2128", soft = isDark ? "#a3adb8" : "#55606c";
    for (const page of Bokeh.documents) {
      for (const plot of page.roots()) {
        const parts = [...plot.left, ...plot.below, ...plot.center, ...plot.above, ...plot.right];
        for (const part of parts) {
          const has = (name) => name in part.properties;
          if (has("axis_label_text_color")) part.axis_label_text_color = ink;
          if (has("major_label_text_color")) part.major_label_text_color = ink;
          if (has("axis_line_color")) part.axis_line_color = soft;
          if (has("major_tick_line_color")) part.major_tick_line_color = soft;
          if (has("grid_line_color") && part.grid_line_color !== null) part.grid_line_color = soft;
          if (has("label_text_color")) part.label_text_color = ink;
          if (has("text_color")) part.text_color = ink;
          if (has("background_fill_alpha")) part.background_fill_alpha = 0;
          if (has("border_line_color")) part.border_line_color = null;
        }
      }
    }
  };
  const items = JSON.parse(document.getElementById("items").textContent);
  const drawn = Object.entries(items).map(([target, item]) =>
    Bokeh.embed.embed_item(item, target));
  if (drawn.length) {
    Promise.all(drawn).then(() => {
      paint(dark.matches);
      dark.addEventListener("change", () => paint(dark.matches));
      window.addEventListener("beforeprint", () => paint(false));
      window.addEventListener("afterprint", () => paint(dark.matches));
      document.documentElement.dataset.drawn = String(drawn.length);
    });
  }
  // closed details do not print
  const closed = [];
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details.card:not([open])").forEach((each) => {
      closed.push(each);
      each.open = true;
    });
  });
  window.addEventListener("afterprint", () => {
    closed.splice(0).forEach((each) => { each.open = false; });
  });
})();
