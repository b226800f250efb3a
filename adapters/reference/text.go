package reference

import "regexp"

// part is a part of a text with one markup. Kind is code, strong, link, or empty for plain text.
type part struct{ Text, Kind, URL string }

// marks matches the Markdown within a line that contracts use: code, strong text and links.
var marks = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\[([^\\]]+)\\]\\((https?://[^)\\s]+)\\)")

// parts splits a text at its Markdown markup, for the templates.
func parts(text string) (out []part) {
	at := 0
	for _, m := range marks.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, part{Text: text[at:m[0]]})
		at = m[1]
		switch {
		case m[2] >= 0:
			out = append(out, part{Text: text[m[2]:m[3]], Kind: "code"})
		case m[4] >= 0:
			out = append(out, part{Text: text[m[4]:m[5]], Kind: "strong"})
		default:
			out = append(out, part{Text: text[m[6]:m[7]], Kind: "link", URL: text[m[8]:m[9]]})
		}
	}
	return append(out, part{Text: text[at:]})
}
