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
  let painted = false;
  const paint = (isDark) => {
    painted = isDark;
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
      dark.addEventListener("change", () => printing || paint(dark.matches));
      document.documentElement.dataset.drawn = String(drawn.length);
    });
  }
  // closed details do not print, and plots neither fit another width nor change colour at once:
  // pictures of them do
  const closed = [];
  let printing = false;
  const picture = (view) => {
    const drawn = view.export("auto", true).canvas, copy = document.createElement("canvas");
    copy.width = drawn.width;
    copy.height = drawn.height;
    copy.style.width = `${view.el.offsetWidth}px`;
    copy.className = "printed";
    const brush = copy.getContext("2d");
    if (painted) brush.filter = "invert(1) hue-rotate(180deg)";
    brush.drawImage(drawn, 0, 0);
    view.el.parentElement.append(copy);
  };
  window.addEventListener("beforeprint", () => {
    printing = true;
    [...Bokeh.index.roots].filter((view) => view.el.closest(".plot")).forEach(picture);
    document.querySelectorAll("details.card:not([open])").forEach((each) => {
      closed.push(each);
      each.open = true;
    });
  });
  window.addEventListener("afterprint", () => {
    closed.splice(0).forEach((each) => { each.open = false; });
    document.querySelectorAll(".printed").forEach((each) => each.remove());
    printing = false;
    paint(dark.matches);
  });
})();
