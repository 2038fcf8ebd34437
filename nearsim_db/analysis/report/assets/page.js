// Filter table rows by the words typed; open all details for printing.
document.querySelectorAll("input[data-table]").forEach(function (input) {
  var table = document.getElementById(input.dataset.table);
  var count = input.parentNode.querySelector("output");
  input.parentNode.hidden = false;
  input.addEventListener("input", function () {
    var words = input.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    var rows = Array.from(table.tBodies[0].rows);
    var shown = rows.filter(function (row) {
      var text = row.textContent.toLocaleLowerCase();
      row.hidden = !words.every(function (word) { return text.includes(word); });
      return !row.hidden;
    });
    count.textContent = words.length ? shown.length + " of " + rows.length : "";
  });
});
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
