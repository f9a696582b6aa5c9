// Sends the answer of whoever is asked to let a program in. What only pages of this origin know goes with it.
const form = document.getElementById("consent");
const said = document.getElementById("said");

function signInAgain() {
  location.assign("/sign-in?to=" + encodeURIComponent(location.pathname + location.search));
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const csrf = localStorage.getItem("csrf");
  if (!csrf) {
    signInAgain();
    return;
  }
  const chosen = new FormData(form);
  const body = {
    ...JSON.parse(form.dataset.request),
    ...JSON.parse(chosen.get("place")),
    scopes: chosen.getAll("scope"),
    allow: event.submitter.value === "yes",
  };
  said.textContent = "One moment…";
  const answer = await fetch(form.dataset.route, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
    body: JSON.stringify(body),
  });
  const given = await answer.json();
  if (answer.ok) {
    said.textContent = "Back to the program…";
    location.assign(given.to);
  } else if (answer.status === 401 || answer.status === 403) {
    signInAgain();
  } else {
    said.textContent = given.error.message;
  }
});
