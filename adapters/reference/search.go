package reference

import (
	"cmp"
	"slices"
	"strings"
)

// hit is an entry of the search index: an operation, an event or a type.
type hit struct {
	// Link is the address of the entry. Kind is operation, event or type.
	Link, Kind, Title, Code string
	// texts holds the searched texts in lower case: the title; title and code; title, code, description and field
	// names.
	texts [3]string
}

// longestSearch is the number of bytes of a search text that are used, and mostHits the largest number of results
// shown.
const longestSearch, mostHits = 200, 100

// hits returns the search index: all operations, events and types.
func hits(tags []tag, events []call, types []kind) (out []hit) {
	add := func(h hit, fields []field, texts ...string) {
		for _, f := range fields {
			texts = append(texts, f.Name)
		}
		title := strings.ToLower(h.Title)
		name := title + " " + strings.ToLower(h.Code)
		h.texts = [3]string{title, name, name + " " + strings.ToLower(strings.Join(texts, " "))}
		out = append(out, h)
	}
	for _, t := range tags {
		for _, c := range t.Operations {
			fields := c.Parameters
			for _, m := range c.Body {
				fields = append(slices.Clip(fields), m.Shape.Fields...)
			}
			add(hit{Link: Path + t.Name + "#" + c.ID, Kind: "operation", Title: cmp.Or(c.Summary, c.ID), Code: c.Method + " " + c.Path}, fields, c.ID, c.Description, t.Name)
		}
	}
	for _, e := range events {
		add(hit{Link: Path + "events#" + e.ID, Kind: "event", Title: cmp.Or(e.Summary, e.ID), Code: e.ID}, nil)
	}
	for _, k := range types {
		add(hit{Link: Path + "types#" + k.Name, Kind: "type", Title: k.Name}, k.Shape.Fields, k.Description)
	}
	return out
}

// search returns the entries that contain all words of text: first those with all words in the title, then those with
// all words in title and code, then the others. Within each group the order of all is kept.
func search(all []hit, text string) (found []hit) {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return nil
	}
	var ranked [len(hit{}.texts)][]hit
	for _, h := range all {
		if i := slices.IndexFunc(h.texts[:], func(text string) bool { return containsAll(text, words) }); i >= 0 {
			ranked[i] = append(ranked[i], h)
		}
	}
	return slices.Concat(ranked[:]...)
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}
