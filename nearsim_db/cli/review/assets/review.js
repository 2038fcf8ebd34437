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
var PAUSES = { updating: 300, waiting: 3000 };
var state = document.getElementById("state");

// What shows clusters is read anew, from a page that leases nothing; a cluster that is gone is replaced by what says so.
function renew(one) {
  fetch(one.dataset.live).then(function (response) {
    if (!response.ok) return;
    return response.text().then(function (text) {
      var page = new DOMParser().parseFromString(text, "text/html");
      one.replaceWith(page.getElementById(one.id) || page.getElementById("main").firstElementChild);
    });
  });
}

function follow() {
  fetch("/state").then(function (response) { return response.json(); }).then(function (found) {
    state.dataset.state = found.state;
    if (TEXTS[found.state]) state.textContent = TEXTS[found.state];
    if (PAUSES[found.state]) window.setTimeout(follow, PAUSES[found.state]);
    else if (found.state === "current") document.querySelectorAll("[data-live]").forEach(renew);
  }, function () { state.textContent = "the desk does not answer"; });
}

if (PAUSES[state.dataset.state]) window.setTimeout(follow, PAUSES[state.dataset.state]);

var counts = document.querySelectorAll("[data-count]");
if (counts.length) {
  fetch("/counts").then(function (response) { return response.json(); }).then(function (found) {
    counts.forEach(function (one) { one.textContent = found[one.dataset.count] || "?"; });
  });
}

// A cluster: the slider hides ties below a threshold, and a click on a tie shows its documents.
document.addEventListener("input", function (event) {
  if (event.target.id !== "threshold") return;
  var threshold = Number(event.target.value);
  var strengths = event.target.dataset.spanning.split(" ").map(Number);
  var parts = 1 + strengths.filter(function (one) { return one < threshold; }).length;
  document.getElementById("parts").textContent = threshold.toFixed(3) + ": " + parts + (parts === 1 ? " part" : " parts");
  document.querySelectorAll("#graph .tie").forEach(function (tie) {
    tie.classList.toggle("gone", Number(tie.dataset.strength) < threshold);
  });
});
document.addEventListener("click", function (event) {
  var tie = event.target.closest("#graph .tie");
  if (tie) location.href = "/pair/" + tie.dataset.left + "/" + tie.dataset.right;
});
