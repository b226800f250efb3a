// Completes names of the query language in the editor. Without this script the list below the
// editor shows the same names.
const editor = document.getElementById("text")
const box = document.getElementById("names")
const names = [...new Set([...document.querySelectorAll("#schema code")].map(c => c.textContent))].sort()

function word() {
  const before = editor.value.slice(0, editor.selectionStart)
  const match = before.match(/"([a-z_0-9]{2,})$/)
  return match ? match[1] : ""
}

function fill(name) {
  const at = editor.selectionStart
  editor.setRangeText(name, at - word().length, at, "end")
  box.hidden = true
  editor.focus()
}

editor.addEventListener("input", () => {
  const start = word()
  const fitting = start ? names.filter(n => n.startsWith(start) && n !== start).slice(0, 8) : []
  box.replaceChildren(...fitting.map(name => {
    const button = document.createElement("button")
    button.type = "button"
    button.className = "second"
    button.textContent = name
    button.addEventListener("click", () => fill(name))
    return button
  }))
  box.hidden = fitting.length === 0
})
editor.addEventListener("keydown", event => {
  if (event.key === "Escape") box.hidden = true
})
