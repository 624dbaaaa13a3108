// The explorer: filters all results, and shows two runs side by side.
(function () {
  "use strict";
  if (!document.getElementById("explorer")) return;
  const {results, groups} = JSON.parse(document.getElementById("figures").textContent).explorer;
  const MOST = 200;
  const make = (name, text, attributes) => {
    const made = document.createElement(name);
    made.textContent = text;
    Object.entries(attributes || {}).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  };
  const line = cells => {
    const row = document.createElement("tr");
    row.append(make("th", cells[0], {scope: "row"}), ...cells.slice(1).map(text => make("td", text)));
    return row;
  };
  const filters = Array.from(document.querySelectorAll("[data-filter]"));
  const matches = (row, without) => filters.every((filter, k) => k === without || !filter.value || row[k] === filter.value);

  // Each filter offers what the other filters leave.
  const offer = () => filters.forEach((filter, k) => {
    const chosen = filter.value, names = Array.from(new Set(results.filter(row => matches(row, k)).map(row => row[k])));
    filter.replaceChildren(new Option("All", ""), ...names.map(name => new Option(name, name)));
    filter.value = names.includes(chosen) ? chosen : "";
  });
  const list = () => {
    offer();
    const found = results.filter(row => matches(row));
    const shown = found.slice(0, MOST).map(row => {
      const made = line(row.map(cell => typeof cell === "number" ? cell.toLocaleString("en") : cell));
      made.cells[4].append(make("small", row[5], {class: "narrow-only"}));
      return made;
    });
    document.querySelector("#explorer-results tbody").replaceChildren(...shown);
    const rest = found.length > MOST ? `, the first ${MOST} are listed` : "";
    document.getElementById("explorer-count").textContent = `${found.length.toLocaleString("en")} results${rest}.`;
  };
  filters.forEach(filter => filter.addEventListener("change", list));
  list();

  const runs = groups.flatMap(group => group.runs.map(run => ({...run, title: group.title, settings: {...group.shared, ...run.own}})));
  const pickers = ["first-run", "second-run"].map(id => document.getElementById(id));
  const compare = () => {
    const [first, second] = pickers.map(picker => runs[picker.value]);
    const paths = Array.from(new Set([...Object.keys(first.settings), ...Object.keys(second.settings)]));
    const text = value => value === undefined ? "–" : value;
    const settings = paths.filter(path => first.settings[path] !== second.settings[path])
      .map(path => line([path, text(first.settings[path]), text(second.settings[path]), ""]));
    const names = Array.from(new Set([...Object.keys(first.scores), ...Object.keys(second.scores)]));
    const signed = value => (value > 0 ? "+" : value < 0 ? "\u2212" : "") + Math.abs(value).toFixed(2);
    const scores = names.map(name => {
      const both = [first.scores[name], second.scores[name]], known = both.every(value => value !== undefined);
      return line([name, ...both.map(value => value === undefined ? "–" : value.toFixed(2)), known ? signed(both[1] - both[0]) : ""]);
    });
    const none = settings.length ? [] : [line(["No setting differs", "", "", ""])];
    document.querySelector("#difference tbody").replaceChildren(...none, ...settings, ...scores);
  };
  pickers.forEach((picker, k) => {
    groups.forEach((group, place) => {
      const part = make("optgroup", "", {label: group.title}), start = groups.slice(0, place).reduce((sum, one) => sum + one.runs.length, 0);
      part.append(...group.runs.map((run, at) => new Option(`${run.method}, seed ${run.seed}, ${run.key}`, start + at)));
      picker.append(part);
    });
    const other = runs.findIndex(run => run.method !== runs[0].method && run.seed === runs[0].seed);
    picker.value = k && other > 0 ? other : Math.min(k, runs.length - 1);
    picker.addEventListener("change", compare);
  });
  compare();
})();
