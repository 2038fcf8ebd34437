// Fold long tables, and show only the entries that contain the words typed into the filter.
var isNarrow = window.matchMedia("(max-width: 40rem)").matches;
var FOLDED = isNarrow ? 3 : 5;

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
      entry.hidden = !isMatch || !(isOpen || words.length) && shown >= FOLDED;
      shown += isMatch;
    });
    button.hidden = isOpen || words.length > 0;
    nothing.hidden = shown > 0;
    nothing.textContent = shown ? "" : "Nothing matches " + input.value.trim() + ". The search covers the " + all + " listed rows.";
    table.closest(".scroll").hidden = !shown;
    if (input) input.parentNode.querySelector("output").textContent = words.length ? shown + " of " + all : "";
  }

  button.addEventListener("click", function () { isOpen = true; show(); });
  table.addEventListener("sorted", show);
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
