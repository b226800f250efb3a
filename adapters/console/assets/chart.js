// Shows the values of a chart below it, at the pointer or at a slider. Without this script they are
// in the table below the chart.
const enhance = figure => {
  const rows = [...figure.querySelectorAll(".values tbody tr")]
  if (rows.length === 0) return
  const names = [...figure.querySelectorAll(".values thead th")].map(cell => cell.textContent)
  const at = rows.map(row => Number(row.dataset.at))
  const drawing = figure.querySelector(".drawing")
  const times = drawing.querySelector(".times")
  const lines = [...drawing.querySelectorAll(".plot")].map(plot => {
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line")
    line.setAttribute("class", "cursor")
    line.setAttribute("y1", "0")
    line.setAttribute("y2", "100%")
    plot.append(line)
    return line
  })
  const slider = document.createElement("input")
  slider.type = "range"
  slider.min = 0
  slider.max = rows.length - 1
  slider.value = rows.length - 1
  slider.setAttribute("aria-label", "Time of the values")
  const shown = document.createElement("p")
  shown.className = "shown"
  const show = () => {
    const i = Number(slider.value)
    const cells = [...rows[i].children].map(cell => cell.textContent)
    const values = cells.slice(1).map((text, k) => text && names[k + 1] + ": " + text).filter(Boolean)
    shown.replaceChildren()
    const time = document.createElement("strong")
    time.textContent = cells[0]
    shown.append(time, " " + values.join(" · "))
    slider.setAttribute("aria-valuetext", cells[0] + ", " + values.join(", "))
    for (const line of lines) {
      line.setAttribute("x1", at[i] + "%")
      line.setAttribute("x2", at[i] + "%")
    }
  }
  slider.addEventListener("input", show)
  drawing.addEventListener("pointermove", event => {
    const box = times.getBoundingClientRect()
    const place = 100 * (event.clientX - box.left) / box.width
    let best = 0
    for (let i = 1; i < at.length; i++) if (Math.abs(at[i] - place) < Math.abs(at[best] - place)) best = i
    slider.value = best
    show()
  })
  drawing.after(slider, shown)
  show()
}
const enhanceAll = () => document.querySelectorAll("figure.chart:not(:has(.shown))").forEach(enhance)
document.addEventListener("refreshed", enhanceAll)
enhanceAll()
