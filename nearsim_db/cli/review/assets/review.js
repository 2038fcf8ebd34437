// Keys press the button or link that shows them; a form is sent once; the state of the clusters is read until they are up
// to date.
var isSent = false;

document.addEventListener("keydown", function (event) {
  var target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.matches("input:not([type=range], [type=checkbox]), select, textarea")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  var key = event.key.toLowerCase();
  if (!/^[a-z0-9]$/.test(key)) return;
  var focused = document.querySelector('[data-focus="' + key + '"]');
  var pressed = document.querySelector('[data-key="' + key + '"]:not([hidden])');
  if (focused) focused.focus();
  else if (pressed) pressed.click();
  else return;
  event.preventDefault();
});

document.addEventListener("submit", function (event) {
  if (isSent) event.preventDefault();
  isSent = true;
});
window.addEventListener("pageshow", function () { isSent = false; });

var links = document.querySelectorAll("a[data-open]");
var openBoth = document.querySelector("[data-open-both]");
if (openBoth && links.length) {
  openBoth.hidden = false;
  openBoth.addEventListener("click", function () {
    links.forEach(function (link) { window.open(link.href, "_blank", "noopener,noreferrer"); });
  });
}

// A screen reader announces a change of the text, not the text that a page begins with.
var done = document.getElementById("done");
if (done.dataset.text) {
  done.textContent = "";
  window.setTimeout(function () { done.textContent = done.dataset.text; }, 100);
}

var TEXTS = {
  current: "clusters are up to date", updating: "clusters are being updated", waiting: "clusters wait for a worker",
};
var state = document.getElementById("state");

function follow() {
  fetch("/state").then(function (response) { return response.json(); }).then(function (found) {
    state.dataset.state = found.state;
    if (TEXTS[found.state]) state.textContent = TEXTS[found.state];
    if (found.state === "updating") window.setTimeout(follow, 500);
  }, function () { state.textContent = "the desk does not answer"; });
}

if (state.dataset.state === "updating") window.setTimeout(follow, 300);

var counts = document.querySelectorAll("[data-count]");
if (counts.length) {
  fetch("/counts").then(function (response) { return response.json(); }).then(function (found) {
    counts.forEach(function (one) { one.textContent = found[one.dataset.count] || "?"; });
  });
}

// A cluster: the slider hides ties below a threshold, and a click on a tie shows its documents.
var slider = document.getElementById("threshold");
if (slider) {
  var strengths = slider.dataset.spanning.split(" ").map(Number);
  slider.addEventListener("input", function () {
    var threshold = Number(slider.value);
    var parts = 1 + strengths.filter(function (one) { return one < threshold; }).length;
    document.getElementById("parts").textContent = threshold.toFixed(3) + ": " + parts + (parts === 1 ? " part" : " parts");
    document.querySelectorAll("#graph .tie").forEach(function (tie) {
      tie.classList.toggle("gone", Number(tie.dataset.strength) < threshold);
    });
  });
}
document.querySelectorAll("#graph .tie").forEach(function (tie) {
  tie.addEventListener("click", function () { location.href = "/pair/" + tie.dataset.left + "/" + tie.dataset.right; });
});
