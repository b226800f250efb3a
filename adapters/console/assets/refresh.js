// Reads the page once in 15 seconds and puts its numbers in place. Without this script the numbers
// are those of the time below the heading.
const live = document.getElementById("live")
const button = document.createElement("button")
button.type = "button"
button.className = "second"
let on = true
const show = () => { button.textContent = on ? "Pause updates" : "Resume updates" }
button.addEventListener("click", () => { on = !on; show() })
show()
live.before(button)
setInterval(async () => {
  if (!on || document.hidden || live.contains(document.activeElement)) return
  const answer = await fetch(location.href).catch(() => null)
  if (!answer || !answer.ok || answer.redirected) return
  const page = new DOMParser().parseFromString(await answer.text(), "text/html")
  const next = page.getElementById("live")
  if (on && next && !live.contains(document.activeElement)) live.replaceChildren(...next.childNodes)
}, 15000)
