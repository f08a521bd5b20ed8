// Browsers load no modules for a page that is opened as a file: says what to do instead.
if (location.protocol === "file:") {
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("problem-text").textContent =
      "This page has to come from a web server; any static one will do. " +
      'In a clone of Cresset, "npm run demo" starts one.';
    document.getElementById("restart").hidden = true;
    document.getElementById("problem").hidden = false;
    document.getElementById("status").textContent = "Stopped.";
  });
}
