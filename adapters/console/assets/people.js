// Offers users whose ids begin with what was typed. Without this script the fields take a user id
// or the team's own id.
const people = document.getElementById("people")
let asked = 0
const offer = async event => {
  if (event.target.getAttribute("list") !== "people") return
  const turn = ++asked
  const answer = await fetch(people.dataset.from + "?" + new URLSearchParams({q: event.target.value.trim()})).catch(() => null)
  if (!answer || !answer.ok || answer.redirected || turn !== asked) return
  people.replaceChildren(...(await answer.json()).map(user => {
    const option = document.createElement("option")
    option.value = user.client_user_id
    option.label = user.user_id
    return option
  }))
}
document.addEventListener("input", offer)
document.addEventListener("focusin", offer)
