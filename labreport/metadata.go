package labreport

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// metaField is what a label of the frame of a report announces.
type metaField uint8

const (
	noField metaField = iota
	fName
	fFirst
	fLast
	fDOB
	fSex
	fCollected
	fReported
	fSpecimen
	fLab
	fIgnore
)

// labelWords are labels, folded, in four languages.
var labelWords = lists(map[metaField]string{
	fName: "patient|patient name|name|name of patient|full name|patient in|patientin|patientenname|patient name sex|nombre|paciente|nombre del paciente|nombre y apellidos|nom du patient|nom et prenom|nom prenom|nom|patient e|patiente|" +
		"name vorname|nachname vorname|apellidos y nombre|apellidos nombre|nombre completo|pat name|pt name|pat|patient information name|client name|donor|subject|nombre paciente|patient s name|pt|sr a|mme|m mme|nom complet|name patient",
	fFirst: "first name|given name|given names|vorname|first|prenom|prenoms|nombres|nombre de pila|forename",
	fLast:  "last name|surname|family name|nachname|familienname|apellidos|apellido|nom de famille|last|primer apellido|nom de naissance|nom usuel",
	fDOB: "dob|date of birth|birth date|birthdate|born|d o b|geb|geboren|geburtsdatum|geb datum|geb am|geboren am|fecha de nacimiento|f nacimiento|fecha nacimiento|f nac|fec nac|nacimiento|nacido|nacida|nacido a|date de naissance|" +
		"ne le|nee le|ne e le|ddn|naissance|date naiss|fecha nac|dn|f de nacimiento|f de nac|born on|birthday|d naissance|fn|ne e",
	fSex: "sex|gender|geschlecht|sexo|sexe|genero|genre|patient sex|sex at birth|administrative sex|legal sex",
	fCollected: "collected|date collected|collection date|collection|coll|collected on|collection time|sample date|date of collection|specimen collected|drawn|date drawn|draw date|sample collected|sampled|sampling date|specimen date|collection date time|date time collected|" +
		"taken|sample taken|date taken|coll date|abnahme|abnahmedatum|entnahme|entnahmedatum|blutentnahme|probenentnahme|abgenommen|abnahme am|entnommen|entnahmezeit|probenahme|abnahmezeit|entnommen am|abnahmezeitpunkt|" +
		"toma|toma de muestra|fecha de toma|fecha toma|extraccion|fecha de extraccion|fecha extraccion|fecha de toma de muestra|f toma|f extraccion|fecha de la toma|fecha muestra|fecha de recoleccion|recoleccion|" +
		"preleve le|prelevement|date de prelevement|date prelevement|prelevement du|preleve|prelevement le|preleve e le|date du prelevement|collected date|date and time collected|service date|date of service|collect date|specimen collection date|obtained",
	fReported: "reported|date reported|report date|reported on|rep|issued|date issued|issue date|released|date of report|report|resulted|final report|report issued|completed|date of issue|reported date|verified|date time reported|result date|released on|results date|published|rep date|" +
		"signed out|finalized|date completed|ausgang|ausgangsdatum|befunddatum|befund vom|ausgegeben|berichtsdatum|freigabe|freigegeben|befundausgang|endbefund|freigegeben am|berichtet|ausgabe|bericht vom|befundet|befund erstellt|erstellt|erstellt am|validiert|" +
		"emision|fecha de emision|fecha emision|f emision|fecha informe|fecha de informe|informado|fecha resultado|fecha de resultado|fecha del informe|emitido|fecha de resultados|f informe|fecha de validacion|validado|fecha validacion|" +
		"edite le|edition|date d edition|rendu le|date du compte rendu|valide le|resultats du|compte rendu du|edite|date de validation|date edition|compte rendu edite le|imprime et valide le|date de rendu|valide|date du rapport|emis le|rapport du",
	fSpecimen: "specimen|specimen id|specimen no|specimen number|sample|sample no|sample id|sample number|accession|accession no|accession number|lab no|lab number|lab nr|labor nr|labornummer|proben nr|probennummer|auftragsnummer|auftrags nr|auftragsnr|auftrag|tagesnummer|probe|" +
		"barcode|lab id|lab ref|requisition|requisition no|requisition number|lab reference|order no|order number|report no|report number|acc|acc no|acc number|lab report no|sid|test no|befundnummer|befund nr|proben id|labor id|" +
		"muestra|n muestra|no muestra|numero de muestra|num muestra|n de muestra|peticion|n peticion|numero de peticion|no de muestra|id muestra|cod muestra|codigo de muestra|referencia|no peticion|solicitud|n de peticion|num peticion|folio|n solicitud|" +
		"dossier|n dossier|n de dossier|numero de dossier|n echantillon|echantillon|numero d echantillon|ref dossier|no echantillon|no dossier|n d echantillon|demande|n demande|n de demande|specimen nr|sample nr|auftrag nr|case no|case number|control number|lab accession",
	fLab: "laboratory|lab|lab name|laboratory name|performing laboratory|performing lab|performed by|performed at|laboratorio|laboratoire|labor|reported by|testing laboratory|issued by|einsender labor|centro|reporting laboratory|analyzed by|tested at",
	fIgnore: "received|date received|printed|print date|age|alter|edad|physician|ordering physician|doctor|phone|telephone|tel|fax|address|mrn|patient id|id|account|account no|account number|client|eingang|eingangsdatum|druckdatum|arzt|einsender|telefon|anschrift|" +
		"patienten id|patienten nr|pat nr|medico|direccion|telefono|recibido|fecha de recepcion|recepcion|medecin|adresse|recu|recu le|date de reception|prescripteur|npi|clia|ordered by|requested by|referred by|provider|ordering provider|fasting|status|page|seite|pagina|" +
		"dni|nhc|historia|historia clinica|versicherung|insurance|kasse|ward|room|station|location|ref by|ref doctor|referring doctor|solicitado por|dr|director|medical director|lab director|comment|comments|note|notes|species|height|weight|patient no|patient number|hospital no|nhs no|" +
		"specimen type|sample type|material|tipo de muestra|email|web|website|priority|entry date|registered|registration date|visit|route|copy to|imprime le|fecha de impresion|impreso|gedruckt|clinical information|diagnosis|diagnose|diagnostico|unit|units|reference|reference range",
})

// found is one field with its receipt.
type found struct {
	text   string
	tokens []token
	page   int
	conf   float64
	weight float64
}

// metaReader gathers the metadata of a document.
type metaReader struct {
	fields   map[metaField][]found
	language string
}

// label finds a label at tokens[i]; n is its length in tokens. strong labels end
// with a colon or stand at the beginning of a cell.
func label(tokens []token, i int) (f metaField, n int) {
	for n = min(6, len(tokens)-i); n > 0; n-- {
		var words []string
		ok := true
		for k := i; k < i+n; k++ {
			t := tokens[k].text
			if k > i && tokens[k].gap {
				ok = false
				break
			}
			if k < i+n-1 && (strings.HasSuffix(t, ":") || strings.HasSuffix(t, ",") || strings.HasSuffix(t, ";")) {
				ok = false
				break
			}
			words = append(words, labelKey(t)...)
		}
		if !ok {
			continue
		}
		if f, ok := labelWords[strings.Join(words, " ")]; ok && len(words) > 0 {
			return f, n
		}
	}
	return noField, 0
}

func labelKey(t string) []string {
	return strings.FieldsFunc(strings.ToLower(plain(t)), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// readMeta looks for the labels of the frame in all lines. Lines that are results
// are not asked.
func readMeta(lines []line, pages []Page, isRow func(int) bool, language string) Metadata {
	m := metaReader{fields: map[metaField][]found{}, language: language}
	var texts []string
	for i := range lines {
		if isRow(i) {
			continue
		}
		texts = append(texts, lines[i].text())
		m.readLine(lines, i)
	}
	for i := range lines {
		if !isRow(i) && lines[i].page == 0 && i < 40 {
			m.strip(&lines[i])
		}
	}
	var pairs [][2]string
	for _, c := range m.fields[fCollected] {
		for _, r := range m.fields[fReported] {
			pairs = append(pairs, [2]string{c.text, r.text})
		}
	}
	order := orderOf(texts, language, pairs)
	out := Metadata{Gender: "other", Evidence: Evidence{}}
	set := func(to **string, field string, f found, text string, conf float64) {
		if text == "" {
			return
		}
		*to = &text
		out.Evidence[field] = Reading{Page: pages[f.page].Number, Box: boxOf(f.tokens, pages[f.page]), Confidence: round2(conf * f.conf)}
	}
	date := func(to **string, field string, f metaField) {
		for _, c := range m.best(f) {
			if iso, printed, sure := findDate(c.text, order); printed != "" {
				conf := 0.97
				if !sure {
					conf = 0.5
				}
				set(to, field, c, iso, conf)
				return
			}
		}
	}
	date(&out.DOB, "dob", fDOB)
	date(&out.DateCollected, "date_collected", fCollected)
	date(&out.DateReported, "date_reported", fReported)
	for _, c := range m.best(fSpecimen) {
		if id := specimenID(c.text); id != "" {
			set(&out.SpecimenNumber, "specimen_number", c, id, 0.95)
			break
		}
	}
	for _, c := range m.best(fSex) {
		if g := genderOf(c.text); g != "" {
			out.Gender = g
			out.Evidence["gender"] = Reading{Page: pages[c.page].Number, Box: boxOf(c.tokens, pages[c.page]), Confidence: round2(0.97 * c.conf)}
			break
		}
	}
	m.setName(set, &out)
	if c, ok := labName(lines, m.best(fLab), isRow); ok {
		set(&out.LabName, "lab_name", c, c.text, 0.9*c.weight)
	}
	return out
}

// best returns the finds of a field, the strongest first, in the order of the
// document.
func (m *metaReader) best(f metaField) []found {
	list := slices.Clone(m.fields[f])
	slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(b.weight, a.weight) })
	return list
}

// readLine finds the labels of one line and what follows each of them: the rest of
// the cell, else the next cell, else what stands below.
func (m *metaReader) readLine(lines []line, at int) {
	l := &lines[at]
	type hit struct {
		f      metaField
		i, n   int
		strong float64
	}
	var hits []hit
	for i := 0; i < len(l.tokens); {
		f, n := label(l.tokens, i)
		if n == 0 {
			i++
			continue
		}
		colon := strings.HasSuffix(l.tokens[i+n-1].text, ":")
		starts := l.tokens[i].gap || i > 0 && (strings.HasSuffix(l.tokens[i-1].text, ".") || strings.HasSuffix(l.tokens[i-1].text, ",") || strings.HasSuffix(l.tokens[i-1].text, ";") || l.tokens[i-1].text == "|" || l.tokens[i-1].text == "/")
		strong := 0.0
		if colon {
			strong += 1
		} else if i+n < len(l.tokens) && (l.tokens[i+n].text == ":" || l.tokens[i+n].text == "#") {
			strong += 1
		}
		if starts {
			strong += 0.5
		}
		if strings.HasSuffix(l.tokens[i+n-1].text, "#") {
			strong += 0.5
		}
		// Without a colon a label must be one of its own kind to count.
		if strong == 0 {
			date := f == fDOB || f == fCollected || f == fReported || f == fIgnore
			if !date {
				i++
				continue
			}
		}
		hits = append(hits, hit{f, i, n, strong})
		i += n
	}
	for k, h := range hits {
		if h.f == fIgnore {
			continue
		}
		from := h.i + h.n
		to := len(l.tokens)
		if k+1 < len(hits) {
			to = hits[k+1].i
		}
		var value []token
		for j := from; j < to; j++ {
			t := l.tokens[j]
			if t.text == "|" || t.text == ":" && len(value) == 0 {
				if len(value) == 0 {
					continue
				}
				break
			}
			// The rest of the cell; the next cell only if there is none.
			if t.gap && len(value) > 0 {
				break
			}
			value = append(value, t)
		}
		weight := 1 + h.strong
		if len(value) == 0 {
			if k+1 < len(hits) && !strings.HasSuffix(l.tokens[h.i+h.n-1].text, ":") && hits[k+1].i == from || from >= len(l.tokens) || l.tokens[min(from, len(l.tokens)-1)].gap {
				value = below(lines, at, l.tokens[h.i].x0, l.tokens[from-1].x1)
				weight -= 0.4
			}
		}
		if len(value) == 0 {
			continue
		}
		m.add(h.f, value, l.page, weight)
	}
}

// below returns the cell under a label.
func below(lines []line, at int, x0, x1 float64) []token {
	l := &lines[at]
	for k := at + 1; k < len(lines) && k <= at+3; k++ {
		n := &lines[k]
		if n.page != l.page || n.y0-l.y1 > 2.2*l.height || n.y0 <= l.y0 {
			continue
		}
		for _, cell := range n.cells() {
			if cell[0].x0 < x1 && cell[len(cell)-1].x1 > x0 && cell[0].x0 > x0-1.5*l.height {
				if f, _ := label(cell, 0); f != noField && strings.HasSuffix(textOf(cell), ":") {
					return nil
				}
				return cell
			}
		}
	}
	return nil
}

func (m *metaReader) add(f metaField, value []token, page int, weight float64) {
	text := strings.TrimSpace(textOf(value))
	ok := false
	switch f {
	case fDOB, fCollected, fReported:
		_, printed, _ := findDate(text, dayFirst)
		ok = printed != ""
		if f == fDOB && ok {
			weight += 0.3
		}
	case fSpecimen:
		ok = specimenID(text) != ""
	case fSex:
		ok = genderOf(text) != ""
	case fName, fFirst, fLast:
		ok = personName(text) != ""
	case fLab:
		ok = len(foldWords(text)) >= 2 && strings.IndexFunc(text, unicode.IsLetter) >= 0
	}
	if ok {
		m.fields[f] = append(m.fields[f], found{text, value, page, confOf(value), weight})
	}
}

// strip reads a line of data without labels: "Ada Example | DOB 02/04/1988 | F |
// #S-1001". It is one if a birth date stands in it.
func (m *metaReader) strip(l *line) {
	var parts [][]token
	var part []token
	hasDOB := false
	for i, t := range l.tokens {
		if f, n := label(l.tokens, i); n > 0 && f == fDOB {
			hasDOB = true
		}
		if t.text == "|" || t.gap && len(part) > 0 || t.text == "•" || t.text == "/" || t.text == "-" {
			if len(part) > 0 {
				parts = append(parts, part)
			}
			part = nil
			if t.text == "|" || t.text == "•" || t.text == "/" || t.text == "-" {
				continue
			}
		}
		if f, n := label(l.tokens, i); n > 0 && (f == fDOB || f == fCollected || f == fReported || f == fSex) && len(part) > 0 {
			parts = append(parts, part)
			part = nil
		}
		part = append(part, t)
		// "born 1981-06-11, male. Sample": a comma or a full stop ends a part.
		if strings.HasSuffix(t.text, ",") && hasDOB || strings.HasSuffix(t.text, ".") && len(t.text) > 4 && hasDOB {
			parts = append(parts, part)
			part = nil
		}
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	if !hasDOB {
		return
	}
	for i, p := range parts {
		text := strings.Trim(textOf(p), " ,.;|()")
		if f, n := label(p, 0); n > 0 && f != noField && n < len(p) {
			continue
		}
		switch {
		case genderOf(text) != "" && (len(text) == 1 || len(text) > 3):
			m.fields[fSex] = append(m.fields[fSex], found{text, p, l.page, confOf(p), 0.8})
		case strings.HasPrefix(text, "#") && specimenID(text) != "":
			m.fields[fSpecimen] = append(m.fields[fSpecimen], found{text, p, l.page, confOf(p), 0.8})
		case i == 0 && len(m.fields[fName])+len(m.fields[fLast]) == 0:
			if personName(text) != "" && len(strings.Fields(text)) >= 2 {
				m.fields[fName] = append(m.fields[fName], found{text, p, l.page, confOf(p), 0.8})
			}
		}
	}
}

var reSpecimenID = regexp.MustCompile(`^#?([A-Za-z]{0,4}[-/. ]?\d[\dA-Za-z./-]{2,24}|[A-Z]{1,6}-?\d{2,}[A-Za-z0-9-]*|[A-Z]+-[A-Z0-9-]*\d[A-Z0-9-]*)$`)

// specimenID returns the first word that has the form of a number of a specimen.
func specimenID(s string) string {
	for _, w := range strings.Fields(s) {
		w = strings.Trim(w, ".,;:()[]#|*")
		if _, printed, _ := findDate(w, dayFirst); printed != "" || len(w) < 4 {
			continue
		}
		if reSpecimenID.MatchString(w) {
			return w
		}
		break
	}
	return ""
}

// genderOf reads a sex as printed.
func genderOf(s string) string {
	f := foldWords(s)
	if len(f) == 0 {
		return ""
	}
	switch f[0] {
	case "m", "male", "mann", "mannlich", "man", "masculino", "hombre", "h", "homme", "masculin", "varon", "v", "herr", "mr", "mannl", "masc":
		return "male"
	case "f", "w", "female", "frau", "weiblich", "woman", "femenino", "mujer", "femme", "feminin", "mme", "mrs", "ms", "hembra", "weibl", "fem":
		return "female"
	case "d", "x", "divers", "other", "diverse", "otro", "autre", "nonbinary", "unknown":
		return "other"
	}
	return ""
}

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
		if _, ok := labelWords[fold(w)]; ok {
			return ""
		}
	}
	if titleWords[fold(words[0])] {
		return ""
	}
	if r := []rune(words[0])[0]; !unicode.IsUpper(r) && !nameParticles[words[0]] {
		return ""
	}
	return s
}

var nameParticles = map[string]bool{"de": true, "van": true, "von": true, "der": true, "del": true, "la": true, "da": true, "di": true, "el": true, "al": true, "bin": true, "le": true, "dos": true, "den": true, "ter": true, "zu": true}

// setName splits the patient's name into first and last.
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

// splitName tells first from last names: a comma or capitals tell, then names that
// are known as given names, then the usual order.
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
	given := func(w string) bool { return givenNames()[fold(w)] }
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

// titleWords make titles of documents and of their parts.
var titleWords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`laboratory lab report reports result results final summary test tests of and clinical medical cumulative interim page confidential patient copy your blood
		laborbefund befund labor laborbericht befundbericht endbefund laborwerte blutbild bericht ergebnis ergebnisse seite
		informe resultados de laboratorio analisis analitica clinicos analiticos del la los pagina resultado
		compte rendu d analyses analyse resultats biologie medicale laboratoire du des le biologiques examens medicales bilan biologique`) {
		m[w] = true
	}
	return m
}()

var (
	reLabWord = regexp.MustCompile(`(?i)\b(?:lab|labs|laborator(?:y|ies|io|ios|ium)|laboratoires?|labor|labore|diagnosti\w*|patholog\w*|clinic\w*|klinik\w*|clínic\w*|hospital\w*|hôpital|krankenhaus|medical cent\w+|health|institut\w*|medizin\w*|biolog\w*|mvz|praxis|centro|centre|analíticas?|análisis|\w*labor|\w+lab|\w+labs)\b`)
	reDash    = regexp.MustCompile(`\s+[-|:•·]+\s+|\s{3,}|\s*[|•]\s*`)
)

// labName finds the name of the laboratory: a heading with such a word, else the
// largest line at the top.
func labName(lines []line, labelled []found, isRow func(int) bool) (found, bool) {
	var heights []float64
	for _, l := range lines {
		heights = append(heights, l.height)
	}
	slices.Sort(heights)
	typical := 1.0
	if len(heights) > 0 {
		typical = heights[len(heights)/2]
	}
	var best found
	bestScore := 0.0
	top := 0
	for i := range lines {
		l := &lines[i]
		if l.page != 0 || isRow(i) {
			break
		}
		if top++; top > 12 {
			break
		}
		for k, cell := range l.cells() {
			text := strings.TrimSpace(textOf(cell))
			for _, part := range reDash.Split(text, -1) {
				part = strings.Trim(part, " .,;:|")
				score := labScore(part)
				if score <= 0 {
					continue
				}
				score += 1.2 * min(1.5, (l.height/typical-1)*3)
				score -= 0.12*float64(top-1) + 0.2*float64(k)
				if score > bestScore {
					bestScore = score
					best = found{text: part, tokens: cell, page: l.page, conf: confOf(cell), weight: min(1, 0.6+0.15*score)}
				}
			}
		}
	}
	for _, c := range labelled {
		text := strings.Trim(reDash.Split(c.text, 2)[0], " .,;:")
		if s := labScore(text) + 0.8; s > bestScore && len(foldWords(text)) >= 2 {
			bestScore, best = s, found{text: text, tokens: c.tokens, page: c.page, conf: c.conf, weight: 0.9}
		}
	}
	return best, bestScore > 0.3
}

// labScore says how much a text looks like the name of a laboratory.
func labScore(s string) float64 {
	words := foldWords(s)
	if len(words) == 0 || len(words) > 8 || len(s) < 4 {
		return 0
	}
	titles, digits := 0, 0
	for _, w := range words {
		if titleWords[w] {
			titles++
		}
		if strings.IndexFunc(w, isDigit) >= 0 {
			digits++
		}
	}
	if titles == len(words) || digits*2 > len(words) || strings.Contains(s, ":") || strings.Contains(s, "@") || strings.Contains(s, "www") {
		return 0
	}
	if f, ok := labelWords[words[0]]; ok && f != fLab || len(words) > 1 && labelWords[words[0]+" "+words[1]] != noField {
		return 0
	}
	score := 0.6
	if reLabWord.MatchString(s) {
		score += 1.5
	}
	if _, printed, _ := findDate(s, dayFirst); printed != "" {
		return 0
	}
	if titles > 0 && !reLabWord.MatchString(s) {
		score -= 0.3
	}
	return score
}

// languageOf guesses the language of a document's frame from its labels and
// headings.
func languageOf(lines []line) string {
	votes := map[string]int{}
	for i := range lines {
		for _, t := range lines[i].tokens {
			for _, w := range foldWords(t.text) {
				if l := languageWords[w]; l != "" {
					votes[l]++
				}
			}
		}
	}
	best, most := "", 0
	for _, l := range []string{"en", "de", "es", "fr"} {
		if votes[l] > most {
			best, most = l, votes[l]
		}
	}
	return best
}

var languageWords = func() map[string]string {
	m := map[string]string{}
	for l, list := range map[string]string{
		"en": "patient name reported collected reference range units result results value birth date laboratory report sample specimen normal high low test sex gender female male blood count total interval the of and received flag issued born",
		"de": "abnahme ausgang geb einheit normbereich wert ergebnis befund laborbefund probe eingang geboren geburtsdatum geschlecht weiblich mannlich untersuchung referenzbereich seite datum leukozyten erythrozyten hamoglobin thrombozyten der die und von kreatinin glukose kalium natrium harnsaure cholesterin labor einheiten blutbild",
		"es": "paciente nombre fecha nacimiento sexo muestra toma emision prueba resultado unidad unidades valores referencia rango hombre mujer laboratorio informe edad medico glucosa hemoglobina leucocitos creatinina sodio potasio de del y colesterol plaquetas hematies trigliceridos extraccion peticion pagina",
		"fr": "prelevement naissance sexe resultat resultats unite unites valeurs reference normales nom prenom dossier analyse laboratoire femme homme medecin edite glycemie hematies leucocytes plaquettes creatinine date le du des et compte rendu echantillon hemoglobine ne nee biologie",
	} {
		for _, w := range strings.Fields(list) {
			if m[w] != "" {
				m[w] = "several"
				continue
			}
			m[w] = l
		}
	}
	return m
}()
