// Signs in: by the code behind `#` when the button is pressed, or by address and password. A page that somebody came back to
// from a provider has the code already and signs in at once; one that is signed in already only keeps what it was given.
const said = document.getElementById("said");
const byLink = document.getElementById("link");
const byPassword = document.getElementById("password");
const otherWays = document.getElementById("other-ways");
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

async function signIn(body, to) {
  said.textContent = "Signing in…";
  try {
    const answer = await fetch("/api/sign-in", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const given = await answer.json();
    if (answer.ok) {
      goOn(given.csrf, to);
    } else {
      said.textContent = given.error.message;
    }
  } catch {
    said.textContent = "haft does not answer. Check your connection, then try again.";
  }
}

if (signedIn?.dataset.csrf) {
  goOn(signedIn.dataset.csrf, signedIn.href);
} else if (signedIn) {
  signedIn.addEventListener("click", (event) => event.preventDefault());
  signIn({ link: signedIn.dataset.link }, signedIn.href);
} else {
  const code = location.hash.slice(1);
  if (code) {
    byLink.hidden = false;
    otherWays.hidden = true;
    history.replaceState(null, "", location.pathname + location.search);
  }
  byLink.addEventListener("submit", (event) => {
    event.preventDefault();
    signIn({ link: code }, wantedPage());
  });
  byPassword?.addEventListener("submit", (event) => {
    event.preventDefault();
    signIn(Object.fromEntries(new FormData(byPassword)), wantedPage());
  });
}
