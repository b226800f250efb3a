// Reads the page once in 15 seconds and puts its numbers in place. Without this script the numbers
// are those of the time below the heading.
const live = document.getElementById("live")
const button = document.createElement("button")
button.type = "button"
button.className = "second"
let on = true
const busy = () => live.contains(document.activeElement) || live.querySelector("details[open]") || live.querySelector(".drawing:hover")
const show = () => { button.textContent = on ? "Pause updates" : "Resume updates" }
button.addEventListener("click", () => { on = !on; show() })
show()
live.before(button)
setInterval(async () => {
  if (!on || document.hidden || busy()) return
  const answer = await fetch(location.href).catch(() => null)
  if (!answer || !answer.ok || answer.redirected) return
  const page = new DOMParser().parseFromString(await answer.text(), "text/html")
  const next = page.getElementById("live")
  if (!on || !next || busy()) return
  live.replaceChildren(...next.childNodes)
  document.dispatchEvent(new Event("refreshed"))
}, 15000)
