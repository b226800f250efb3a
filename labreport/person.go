package labreport

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// genderOf converts a printed sex to male, female or other; empty if the text names none, names several ("m/w/d") or
// has boxes to be checked. A choice before a colon, as in "(M/F): F", is ignored.
func genderOf(s string) string {
	if i := strings.LastIndex(s, ":"); i >= 0 {
		if g := genderOf(s[i+1:]); g != "" {
			return g
		}
	}
	if reCheckBox.MatchString(s) {
		return ""
	}
	first, run := "", true
	for i, w := range fold.Words(s) {
		g := sexes[w]
		if i == 0 {
			first = g
		}
		// A letter counts beside the first word only: "37 y 3 m".
		run = run && g != ""
		if g != "" && g != first && (run || len(w) > 3) {
			return ""
		}
	}
	return first
}

// reCheckBox matches a box to be checked, checked or not.
var reCheckBox = regexp.MustCompile(`[\[(]\s*[xX✓✔✗]?\s*[\])]|[☐☑☒□■◻◼]`)

// sexes are words for male, female and other.
var sexes = func() map[string]string {
	out := map[string]string{}
	for sex, list := range map[string]string{
		"male":   "m male mann mannlich man masculino hombre h homme masculin varon v herr mr mannl masc",
		"female": "f w female frau weiblich woman femenino mujer femme feminin mme mrs ms hembra weibl fem",
		"other":  "d x divers other diverse otro autre nonbinary unknown",
	} {
		for _, w := range strings.Fields(list) {
			out[w] = sex
		}
	}
	return out
}()

var reTitle = regexp.MustCompile(`(?i)^(?:mr|mrs|ms|miss|dr|herr|frau|sr|sra|señor|señora|mme|mlle|monsieur|madame|don|doña|m)\.?\s+`)

// personName returns the text if it has the form of a person's name.
func personName(s string) string {
	s = strings.Trim(s, " .,;:|-*")
	s = reTitle.ReplaceAllString(s, "")
	if i := strings.IndexAny(s, "(["); i > 0 {
		s = strings.TrimSpace(s[:i])
	}
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
	if len(words) == 0 || len(words) > 6 || len(s) > 60 {
		return ""
	}
	for _, w := range words {
		if strings.IndexFunc(w, func(r rune) bool {
			return !unicode.IsLetter(r) && r != '-' && r != '\'' && r != '.'
		}) >= 0 {
			return ""
		}
		if _, ok := labelWords[fold.String(w)]; ok || headingWords[fold.String(w)] {
			return ""
		}
	}
	if titleWords[fold.String(words[0])] || beginsWithLabel(s) {
		return ""
	}
	if r := []rune(words[0])[0]; !unicode.IsUpper(r) && !nameParticles[words[0]] {
		return ""
	}
	return s
}

// beginsWithLabel reports whether a text begins with a label of several words: "Birth date".
func beginsWithLabel(s string) bool {
	words := fold.Words(s)
	for n := 2; n <= len(words); n++ {
		if _, ok := labelWords[strings.Join(words[:n], " ")]; ok {
			return true
		}
	}
	return false
}

// headingWords are words in headings above the patient's data.
var headingWords = words("person")

var nameParticles = map[string]bool{"de": true, "van": true, "von": true, "der": true, "del": true, "la": true, "da": true, "di": true, "el": true, "al": true, "bin": true, "le": true, "dos": true, "den": true, "ter": true, "zu": true}

// setName splits the patient's name into first and last name, and passes them to set with the field of out, the JSON
// name of the field, the position, the text and the confidence.
func (m *metaReader) setName(set func(**string, string, found, string, float64), out *Metadata) {
	first, last := m.best(fFirst), m.best(fLast)
	if len(first) > 0 && len(last) > 0 {
		set(&out.PatientFirstName, "patient_first_name", first[0], personName(first[0].text), 0.96)
		set(&out.PatientLastName, "patient_last_name", last[0], personName(last[0].text), 0.96)
		return
	}
	names := m.best(fName)
	if len(names) == 0 {
		return
	}
	n := names[0]
	// "Nom: MARTIN   Prénom: Claire"
	if len(first) > 0 {
		set(&out.PatientFirstName, "patient_first_name", first[0], personName(first[0].text), 0.95)
		set(&out.PatientLastName, "patient_last_name", n, personName(n.text), 0.95)
		return
	}
	if len(last) > 0 {
		set(&out.PatientFirstName, "patient_first_name", n, personName(n.text), 0.95)
		set(&out.PatientLastName, "patient_last_name", last[0], personName(last[0].text), 0.95)
		return
	}
	f, l, conf := splitName(personName(n.text))
	set(&out.PatientFirstName, "patient_first_name", n, f, conf)
	set(&out.PatientLastName, "patient_last_name", n, l, conf)
}

// splitName splits a person's name. A comma or a word in capitals decides which part is the last name, then known
// given names, then the order first, last. conf is the confidence of the split, 0 to 1.
func splitName(s string) (first, last string, conf float64) {
	if before, after, ok := strings.Cut(s, ","); ok && strings.TrimSpace(after) != "" {
		return dropInitial(strings.TrimSpace(after)), strings.TrimSpace(before), 0.97
	}
	words := strings.Fields(strings.Trim(s, ", "))
	switch len(words) {
	case 0:
		return "", "", 0
	case 1:
		return "", words[0], 0.5
	}
	// "MARTIN Claire": capitals are the last name.
	upper := func(w string) bool { return len([]rune(w)) > 1 && strings.ToUpper(w) == w }
	caps := 0
	for _, w := range words {
		if upper(w) {
			caps++
		}
	}
	if caps > 0 && caps < len(words) {
		var f, l []string
		for _, w := range words {
			if upper(w) {
				l = append(l, w)
			} else {
				f = append(f, w)
			}
		}
		return dropInitial(strings.Join(f, " ")), strings.Join(l, " "), 0.95
	}
	given := func(w string) bool { return givenNames()[fold.String(w)] }
	k := len(words)
	switch {
	case given(words[0]) && !given(words[k-1]), given(words[0]) && k == 2:
		n := 1
		for n < k-1 && (given(words[n]) || len(strings.Trim(words[n], ".")) == 1) {
			n++
		}
		return dropInitial(strings.Join(words[:n], " ")), strings.Join(words[n:], " "), 0.93
	case given(words[k-1]) && !given(words[0]):
		n := k - 1
		for n > 1 && given(words[n-1]) {
			n--
		}
		return strings.Join(words[n:], " "), strings.Join(words[:n], " "), 0.9
	}
	n := 1
	for n < k-1 && len(strings.Trim(words[n], ".")) == 1 {
		n++
	}
	return dropInitial(strings.Join(words[:n], " ")), strings.Join(words[n:], " "), 0.8
}

func dropInitial(s string) string {
	words := strings.Fields(s)
	for len(words) > 1 && len(strings.Trim(words[len(words)-1], ".")) == 1 {
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ")
}
