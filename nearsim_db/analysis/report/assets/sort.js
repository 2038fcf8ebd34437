// Sort a table by the column whose heading is pressed: text ascending first, figures (class n) descending first, empty cells last.
document.querySelectorAll("table.sortable > thead th").forEach(function (heading) {
  var isNumeric = heading.classList.contains("n");
  var compareText = new Intl.Collator(undefined, { numeric: true }).compare;

  function value(row) {
    var cell = row.cells[heading.cellIndex];
    var text = (cell.dataset.sort !== undefined ? cell.dataset.sort : cell.textContent).trim();
    if (text === "") return null;
    return isNumeric ? Number(text) : text;
  }

  function sort() {
    var current = heading.getAttribute("aria-sort");
    var ascending = current ? current === "descending" : !isNumeric;
    Array.from(heading.parentNode.cells).forEach(function (other) { other.removeAttribute("aria-sort"); });
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    var body = heading.closest("table").tBodies[0];
    body.append(...Array.from(body.rows).sort(function (left, right) {
      var a = value(left), b = value(right);
      if (a === null || b === null) return (a === null) - (b === null);
      return (isNumeric ? a - b : compareText(a, b)) * (ascending ? 1 : -1);
    }));
  }

  var button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  button.addEventListener("click", sort);
  heading.append(button);
});
