// Fold long tables, filter their entries by the words typed, and open everything for printing.
var isNarrow = window.matchMedia("(max-width: 40rem)").matches;
var FOLDED = isNarrow ? 3 : 5;
var isPrinting = false;

function entries(table) {
  return Array.from(table.classList.contains("grouped") ? table.tBodies : table.tBodies[0].rows);
}

document.querySelectorAll("table.sortable, table.facts[id]").forEach(function (table) {
  var input = document.querySelector('input[data-table="' + table.id + '"]');
  var all = entries(table).length;
  var isOpen = all <= FOLDED + 2 || table.closest("details") !== null;
  var button = document.createElement("button");
  var nothing = document.createElement("p");
  button.type = "button";
  button.className = "unfold";
  button.textContent = "Show all " + all;
  nothing.className = "note nothing";
  nothing.setAttribute("role", "status");
  table.closest(".scroll").after(nothing, button);

  function show() {
    var words = input ? input.value.toLocaleLowerCase().split(/\s+/).filter(Boolean) : [];
    var shown = 0;
    entries(table).forEach(function (entry) {
      var text = entry.textContent.toLocaleLowerCase();
      var isMatch = words.every(function (word) { return text.includes(word); });
      entry.hidden = !isMatch || !(isOpen || isPrinting || words.length) && shown >= FOLDED;
      shown += isMatch;
    });
    button.hidden = isOpen || isPrinting || words.length > 0;
    nothing.hidden = shown > 0;
    nothing.textContent = shown ? "" : "Nothing matches " + input.value.trim() + ". The search covers the " + all + " listed rows.";
    table.closest(".scroll").hidden = !shown;
    if (input) input.parentNode.querySelector("output").textContent = words.length ? shown + " of " + all : "";
  }

  button.addEventListener("click", function () { isOpen = true; show(); });
  table.addEventListener("sorted", show);
  window.addEventListener("beforeprint", function () { isPrinting = true; show(); });
  window.addEventListener("afterprint", function () { isPrinting = false; show(); });
  if (input) {
    input.parentNode.hidden = false;
    input.addEventListener("input", show);
  }
  if (all) show();
});
if (isNarrow) {
  document.querySelectorAll("details.more").forEach(function (more) {
    var summary = more.querySelector("summary");
    var last = more.previousElementSibling;
    if (!last.previousElementSibling.matches(".pair")) return;
    summary.after(last);
    summary.textContent = more.querySelectorAll(".pair").length + " more";
  });
}
window.addEventListener("beforeprint", function () {
  document.querySelectorAll("details:not([open])").forEach(function (one) {
    one.dataset.closed = "";
    one.open = true;
  });
});
window.addEventListener("afterprint", function () {
  document.querySelectorAll("details[data-closed]").forEach(function (one) {
    delete one.dataset.closed;
    one.open = false;
  });
});
