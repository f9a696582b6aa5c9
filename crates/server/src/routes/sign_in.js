// Signs in: by the code behind `#` when the button is pressed, or by address and password. A page that is signed in already
// only keeps what it was given and goes on.
const said = document.getElementById("said");
const byLink = document.getElementById("link");
const byPassword = document.getElementById("password");
const signedIn = document.getElementById("signed-in");

function goOn(csrf, to) {
  // Other pages of this origin need it too; a page at another port cannot read it.
  localStorage.setItem("csrf", csrf);
  location.replace(to);
}

// Only a page of this server is gone to.
function wantedPage() {
  const to = new URLSearchParams(location.search).get("to") ?? "/";
  return to.startsWith("/") && new URL(to, location.origin).origin === location.origin ? to : "/";
}

async function signIn(body) {
  said.textContent = "Signing in…";
  const answer = await fetch("/api/sign-in", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const given = await answer.json();
  if (!answer.ok) {
    said.textContent = given.error.message;
    return;
  }
  goOn(given.csrf, wantedPage());
}

if (signedIn) {
  goOn(signedIn.dataset.csrf, signedIn.href);
} else {
  const code = location.hash.slice(1);
  if (code) {
    byLink.hidden = false;
    byPassword.hidden = true;
    history.replaceState(null, "", location.pathname + location.search);
  }
  byLink.addEventListener("submit", (event) => {
    event.preventDefault();
    signIn({ link: code });
  });
  byPassword.addEventListener("submit", (event) => {
    event.preventDefault();
    signIn(Object.fromEntries(new FormData(byPassword)));
  });
}
