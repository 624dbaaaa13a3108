// Draws the charts, links them with the tables of their section, and sorts tables. Nothing is fetched.
(function () {
  "use strict";
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));

  // Data come by column: {all: x} is x in every row, {words, at} names words by place, {of, at} counts parts of one.
  const columnOf = (packed, count) =>
    Array.isArray(packed) ? packed
      : "all" in packed ? new Array(count).fill(packed.all)
      : packed.words ? packed.at.map(place => packed.words[place])
      : packed.at.map(whole => whole === null ? null : whole / packed.of);
  const columnsOf = name => {
    const data = figures.data[name];
    return Object.entries(data.columns).map(([key, packed]) => [key, columnOf(packed, data.rows)]);
  };
  const recordsOf = name => {
    const columns = columnsOf(name);
    return Array.from({length: figures.data[name].rows}, (_, row) =>
      Object.fromEntries(columns.map(([key, values]) => [key, values[row]])));
  };
  const namesOf = spec => {
    const parts = ["layer", "hconcat", "vconcat", "concat"].flatMap(key => spec[key] || []).concat(spec.spec || []);
    const inner = [spec.data && spec.data.name, ...parts.flatMap(namesOf)];
    return Array.from(new Set(inner.filter(name => name)));
  };

  // Each section remembers which method is in front.
  const states = new Map();
  const stateOf = element => {
    const section = element.closest("section") || document.body;
    if (!states.has(section)) states.set(section, {section, focus: "", views: []});
    return states.get(section);
  };
  const tell = (view, state) => view.signal("focus", state.focus).runAsync();
  const choose = (state, method) => {
    state.focus = state.focus === method ? "" : method;
    state.views.forEach(view => tell(view, state));
    all("tr[data-method]", state.section).forEach(row => {
      const chosen = row.dataset.method === state.focus;
      row.classList.toggle("chosen", chosen);
      all("th > button", row).forEach(button => button.setAttribute("aria-pressed", String(chosen)));
    });
  };
  all("tr[data-method]").forEach(row =>
    row.addEventListener("click", () => choose(stateOf(row), row.dataset.method)));

  // Charts are drawn one after the other so that the page can be read meanwhile; what is in view comes first.
  // A chart in a closed part has no width; it is drawn when the part is opened.
  const isFolded = id => document.getElementById(id).closest("details:not([open]), [hidden]") !== null;
  const waiting = new Set(), urgent = [];
  const folded = new Set(Object.keys(figures.charts));
  const draw = async id => {
    const spec = figures.charts[id], place = document.getElementById(id);
    spec.datasets = Object.fromEntries(namesOf(spec).map(name => [name, recordsOf(name)]));
    spec.config = Object.assign({aria: false}, figures.styles[spec.config]);  // the element around it speaks for the whole chart
    const {view} = await window.vegaEmbed(place, spec, {mode: "vega-lite", actions: false, renderer: "svg"});
    place.setAttribute("role", "img");  // Vega has made it a document of its own
    place.setAttribute("aria-label", spec.description);
    place.style.minHeight = "";
    if (!(spec.params || []).some(param => param.name === "focus")) return;
    const state = stateOf(place);
    state.views.push(view);
    tell(view, state);
    view.addEventListener("click", (event, item) => {
      if (item && item.datum && item.datum.method) choose(state, item.datum.method);
    });
  };
  let drawing = false;
  const drawAll = async () => {
    if (drawing) return;
    drawing = true;
    while (waiting.size) {
      const id = urgent.find(one => waiting.has(one)) || waiting.values().next().value;
      waiting.delete(id);
      await draw(id);
      await new Promise(resolve => setTimeout(resolve));
    }
    drawing = false;
    document.documentElement.dataset.charts = "drawn";
  };
  const watcher = new IntersectionObserver(entries =>
    entries.filter(entry => entry.isIntersecting).forEach(entry => urgent.unshift(entry.target.id)));
  // Charts that have become visible are drawn.
  const unfold = () => {
    const visible = Array.from(folded).filter(id => !isFolded(id));
    if (visible.length) delete document.documentElement.dataset.charts;
    visible.forEach(id => {
      const place = document.getElementById(id), height = figures.charts[id].height;
      folded.delete(id);
      waiting.add(id);
      place.style.minHeight = (typeof height === "number" ? height : 200) + "px";
      watcher.observe(place);
    });
    drawAll();
  };

  // The numbers of a chart become a table when they are asked for.
  const element = (name, text, attributes) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text === null ? "–" : String(text);
    Object.entries(attributes || {}).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  };
  const tableOf = (name, title) => {
    const columns = columnsOf(name), table = element("table"), head = element("tr"), body = element("tbody");
    columns.forEach(([key]) => head.append(element("th", key, {scope: "col"})));
    for (let row = 0; row < figures.data[name].rows; row++) {
      const line = element("tr");
      columns.forEach(([, values], k) =>
        line.append(k ? element("td", values[row]) : element("th", values[row], {scope: "row"})));
      body.append(line);
    }
    const top = element("thead");
    top.append(head);
    table.append(element("caption", title, {class: "unseen"}), top, body);
    const box = element("div", undefined, {class: "wide", tabindex: "0", role: "region", "aria-label": "Numbers: " + title});
    box.append(table);
    return box;
  };
  all("details.numbers[data-chart]").forEach(details => details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("table")) return;
    const title = details.closest("figure").querySelector("figcaption").textContent;
    namesOf(figures.charts[details.dataset.chart]).forEach(name => details.append(tableOf(name, title)));
  }));

  // Sorting moves whole bodies of a table: a method stays with its published rows. Gaps stay last.
  const keyOf = (body, column) => {
    const cell = body.rows[0].cells[column], text = cell.dataset.value || cell.textContent.trim();
    const number = parseFloat(text.replaceAll(",", ""));
    return column === 0 ? text : Number.isNaN(number) ? null : number;
  };
  const compare = (a, b) => typeof a === "string" ? a.localeCompare(b, "en", {numeric: true}) : a - b;
  const sort = (table, head) => {
    const column = head.cellIndex, now = head.getAttribute("aria-sort");
    const descending = now === "none" ? column > 0 : now === "ascending";
    const keyed = Array.from(table.tBodies).map(body => ({body, key: keyOf(body, column)}));
    keyed.sort((a, b) => a.key === null || b.key === null
      ? (a.key === null) - (b.key === null) : (descending ? -1 : 1) * compare(a.key, b.key));
    keyed.forEach(({body}) => table.append(body));
    all("th[aria-sort]", table.tHead).forEach(other => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  };
  all("table.sortable thead button").forEach(button =>
    button.addEventListener("click", () => sort(button.closest("table"), button.closest("th"))));

  all(".all-metrics").forEach(button => button.addEventListener("click", () => {
    const open = document.getElementById(button.getAttribute("aria-controls")).classList.toggle("with-all");
    button.setAttribute("aria-expanded", String(open));
  }));

  // What is folded: charts are drawn and numbers written when a part is opened, and a link opens the part it leads into.
  all("details").forEach(details => details.addEventListener("toggle", () => {
    if (!details.open) return;
    unfold();
    all("[data-shows]", details).filter(place => !place.textContent).forEach(place => {
      const content = JSON.parse(document.getElementById(place.dataset.shows).textContent);
      place.textContent = JSON.stringify(content, null, 1);
    });
  }));
  // One view at a time: the answers, a benchmark, the explorer. A link to anything in a view opens the view.
  const views = all(".view");
  const openTarget = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (views.length) {
      const view = (target && target.closest(".view")) || views[0];
      views.forEach(one => { one.hidden = one !== view; });
      all("header nav a").forEach(link => {
        const current = document.querySelector(link.hash).closest(".view") === view && (view !== views[0] || link.hash === "#" + views[0].id);
        if (current) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
      });
    }
    if (target) {
      for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
      if (target === views[0]) scrollTo(0, 0); else target.scrollIntoView();
    }
    unfold();
  };
  window.addEventListener("hashchange", openTarget);
  openTarget();
})();
