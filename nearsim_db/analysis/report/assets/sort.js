// Sort a table by the column whose heading is pressed. Text is first sorted in ascending order, figures (class n) in
// descending order unless data-first sets another order. Empty cells come last. In a table of class grouped, each tbody
// is an entry; in other tables, each row.
document.querySelectorAll("table.sortable > thead th").forEach(function (heading) {
  var isNumeric = heading.classList.contains("n");
  var first = heading.dataset.first || (isNumeric ? "descending" : "ascending");
  var compareText = new Intl.Collator(undefined, { numeric: true }).compare;
  var table = heading.closest("table");
  var isGrouped = table.classList.contains("grouped");

  function value(entry) {
    var cell = (isGrouped ? entry.rows[0] : entry).cells[heading.cellIndex];
    var text = (cell.dataset.sort !== undefined ? cell.dataset.sort : cell.textContent).trim();
    if (text === "") return null;
    return isNumeric ? Number(text) : text;
  }

  function sort() {
    var current = heading.getAttribute("aria-sort");
    var order = !current ? first : current === "ascending" ? "descending" : "ascending";
    Array.from(heading.parentNode.cells).forEach(function (other) { other.removeAttribute("aria-sort"); });
    heading.setAttribute("aria-sort", order);
    var parent = isGrouped ? table : table.tBodies[0];
    var entries = Array.from(isGrouped ? table.tBodies : parent.rows);
    parent.append(...entries.sort(function (left, right) {
      var a = value(left), b = value(right);
      if (a === null || b === null) return (a === null) - (b === null);
      return (isNumeric ? a - b : compareText(a, b)) * (order === "ascending" ? 1 : -1);
    }));
    table.dispatchEvent(new Event("sorted"));
  }

  var button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  button.addEventListener("click", sort);
  heading.append(button);
});
