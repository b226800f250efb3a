package browse

import "strings"

// Focus describes the element that has the keyboard focus.
type Focus struct {
	// Name is the label of the element, or its text: about what a screen reader says.
	Name string `json:"name"`
	// Visible reports whether the element is inside the window and has an outline of at least 2 pixels.
	Visible bool `json:"visible"`
	// Inside reports whether an element of the page has the focus. It is false if only the document has it.
	Inside bool `json:"inside"`
	// Again reports whether the element had the focus at an earlier press of Tab, and another element had it since
	// then.
	Again bool   `json:"again"`
	HTML  string `json:"html"`
}

const readFocus = `(() => {
	const e = document.activeElement
	if (!e || e === document.body || e === document.documentElement) return {inside: false}
	const style = getComputedStyle(e), box = e.getBoundingClientRect()
	const name = e.getAttribute("aria-label") || e.labels?.[0]?.innerText || e.innerText || e.value || ""
	const again = Boolean(e.hadFocus) && e !== document.lastFocus // a field for a date has several stops
	e.hadFocus = true
	document.lastFocus = e
	return {
		inside: true, again, name: name.trim().replace(/\s+/g, " "), html: e.outerHTML.slice(0, 200),
		visible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && style.visibility === "visible" &&
			box.width > 1 && box.height > 1 && box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth,
	}
})()`

// Tab presses the Tab key and returns the element that has the focus then. It fails the test if that element is not
// visible.
func (tab *Tab) Tab() Focus {
	tab.t.Helper()
	tab.Keys("\t")
	f := Eval[Focus](tab, readFocus)
	if f.Inside && !f.Visible {
		tab.t.Fatalf("the focus is not visible at %s: %s", tab.At(), f.HTML)
	}
	return f
}

// Reach presses the Tab key until an element whose name contains this text has the focus.
func (tab *Tab) Reach(words string) {
	tab.t.Helper()
	var passed []string
	for range 2000 {
		f := tab.Tab()
		if f.Inside && strings.Contains(f.Name, words) {
			return
		}
		if f.Again {
			break
		}
		passed = append(passed, f.Name)
	}
	tab.t.Fatalf("Tab does not reach %q at %s, but: %s", words, tab.At(), strings.Join(passed, " | "))
}

// Walk presses the Tab key until it has passed through the whole page, and returns the names of the elements that
// had the focus.
func (tab *Tab) Walk() (names []string) {
	tab.t.Helper()
	for range 2000 {
		f := tab.Tab()
		if f.Again || !f.Inside && len(names) > 0 {
			return names
		}
		if f.Inside {
			names = append(names, f.Name)
		}
	}
	tab.t.Fatalf("Tab does not come to the end of %s", tab.At())
	return nil
}
