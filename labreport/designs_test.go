package labreport_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport"
)

// design is a layout of a report as parameters.
type design struct {
	number int
	form   string // of the rows
	cols   []int  // of a table, as in heads
	flag   string // how an abnormal value is marked
	ref    string // how a range is written
	unit   string // where a unit stands
	traps  []string
	size   float64
}

func (d design) blind() bool { return d.number%2 == 1 }

func (d design) String() string {
	return fmt.Sprintf("%02d %s, %s flag, %s range, unit in %s, %s", d.number, d.form, d.flag, d.ref, d.unit, strings.Join(d.traps, " "))
}

var trapNames = []string{"guidance", "risk", "times", "previous", "ages", "notes"}

// designs returns all layouts: every form occurs in both sets.
func designs() (out []design) {
	forms := []string{"table", "table", "table", "inline", "cards", "tiles", "two a line", "wrapped", "blocks", "prose"}
	for i := range 80 {
		r := rand.New(rand.NewPCG(uint64(i), 48))
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		d := design{number: i, form: forms[i/2%len(forms)], flag: pick("column", "glued", "star", "arrow", "none"), ref: pick("hyphen", "words", "bracket", "unit"), unit: pick("column", "value", "name", "column"), size: 9 + float64(r.IntN(3))}
		d.cols = [][]int{{0, 1, 2, 3, 4}, {0, 4, 1, 3, 2}, {0, 3, 1, 2, 4}, {2, 0, 1, 3, 4}, {0, 1, 3, 2, 4, 5}, {0, 5, 1, 2, 3, 4}, {8, 0, 1, 2, 3, 4}}[r.IntN(7)]
		for _, t := range trapNames {
			if r.IntN(3) == 0 {
				d.traps = append(d.traps, t)
			}
		}
		out = append(out, d)
	}
	return out
}

var languages = []string{"en", "de", "es", "fr"}

// rareAnalytes are measured less often than those of the layouts, in the units of Europe
// and America.
var rareAnalytes = map[string][]analyte{
	"Chemistry": {
		{"Glucose", "Glukose", "Glucosa", "Glucose", "mmol/L", 3.9, 5.6, 1, "14749-6 15074-8"},
		{"Creatinine", "Kreatinin", "Creatinina", "Créatinine", "umol/L", 60, 110, 0, "14682-9 59826-8"},
		{"Urea", "Harnstoff", "Urea", "Urée", "mmol/L", 2.5, 7.8, 1, "22664-7"},
		{"Uric Acid", "Harnsäure", "Ácido úrico", "Acide urique", "umol/L", 200, 420, 0, "14933-6"},
		{"Phosphate", "Phosphat", "Fósforo", "Phosphore", "mmol/L", 0.8, 1.5, 2, "14879-1"},
		{"LDH", "LDH", "LDH", "LDH", "U/L", 135, 225, 0, "2532-0 14804-9"},
		{"Creatine Kinase", "CK gesamt", "Creatincinasa", "Créatine kinase", "U/L", 39, 190, 0, "2157-6"},
		{"Osmolality, Serum", "Osmolalität", "Osmolalidad", "Osmolalité", "mosm/kg", 275, 295, 0, "2692-2"},
		{"Homocysteine", "Homocystein", "Homocisteína", "Homocystéine", "umol/L", 5, 15, 1, "13965-9"},
		{"Lactate", "Laktat", "Lactato", "Lactate", "mmol/L", 0.5, 2.2, 1, "2524-7 32693-4"},
	},
	"Hormones": {
		{"Testosterone, Total", "Testosteron", "Testosterona", "Testostérone", "nmol/L", 8.6, 29, 1, "14913-8"},
		{"Cortisol", "Cortisol", "Cortisol", "Cortisol", "nmol/L", 133, 537, 0, "14675-3"},
		{"Prolactin", "Prolaktin", "Prolactina", "Prolactine", "ng/mL", 4, 15.2, 1, "2842-3"},
		{"LH", "LH", "LH", "LH", "mIU/mL", 1.7, 8.6, 1, "10501-5"},
		{"FSH", "FSH", "FSH", "FSH", "mIU/mL", 1.5, 12.4, 1, "15067-2"},
		{"Insulin", "Insulin", "Insulina", "Insuline", "uIU/mL", 2.6, 24.9, 1, "20448-7"},
		{"C-Peptide", "C-Peptid", "Péptido C", "Peptide C", "ng/mL", 1.1, 4.4, 1, "1986-9"},
		{"PTH, Intact", "Parathormon", "Paratohormona", "Parathormone", "pg/mL", 15, 65, 0, "2731-8"},
		{"DHEA-Sulfate", "DHEA-S", "DHEA-S", "SDHEA", "ug/dL", 80, 560, 0, "2191-5"},
	},
	"Coagulation": {
		{"Fibrinogen", "Fibrinogen", "Fibrinógeno", "Fibrinogène", "mg/dL", 200, 400, 0, "3255-7"},
		{"aPTT", "aPTT", "TTPA", "TCA", "s", 24, 36, 1, "3173-2 14979-9"},
		{"INR", "INR", "INR", "INR", "", 0.9, 1.2, 2, "6301-6 34714-6"},
		{"ESR", "BSG", "VSG", "Vitesse de sédimentation", "mm/h", open, 20, 0, "4537-7 30341-2"},
	},
	"Proteins": {
		{"Transferrin", "Transferrin", "Transferrina", "Transferrine", "mg/dL", 200, 360, 0, "3034-6"},
		{"Haptoglobin", "Haptoglobin", "Haptoglobina", "Haptoglobine", "mg/dL", 30, 200, 0, "4542-7 46127-7"},
		{"IgG", "IgG", "IgG", "IgG", "mg/dL", 700, 1600, 0, "2465-3"},
		{"Apolipoprotein B", "Apolipoprotein B", "Apolipoproteína B", "Apolipoprotéine B", "mg/dL", 60, 117, 0, "1884-6 1871-3"},
		{"Cystatin C", "Cystatin C", "Cistatina C", "Cystatine C", "mg/L", 0.5, 1.1, 2, "33863-2"},
		{"CRP", "CRP", "PCR", "CRP", "mg/L", open, 5, 1, "1988-5 30522-7"},
		{"PSA, Total", "PSA gesamt", "PSA total", "PSA total", "ng/mL", open, 4, 2, "2857-1 35741-8"},
		{"NT-proBNP", "NT-proBNP", "NT-proBNP", "NT-proBNP", "pg/mL", open, 125, 0, "33762-6"},
		{"Zinc", "Zink", "Zinc", "Zinc", "ug/dL", 70, 120, 0, "5763-8"},
	},
}

var rarePanels = []string{"Chemistry", "Hormones", "Coagulation", "Proteins"}

func (m *maker) mixed(n int) []cell {
	m.panels = append(append([]string{}, panelOrder...), rarePanels...)
	m.r.Shuffle(len(m.panels), func(i, k int) { m.panels[i], m.panels[k] = m.panels[k], m.panels[i] })
	return m.results(n)
}

// set writes one report of a design.
func (d design) set(m *maker) {
	m.w.size = d.size
	m.front(m.r.IntN(3))
	rows := m.mixed(10 + m.r.IntN(8))
	switch d.form {
	case "table", "wrapped":
		d.table(m, rows)
	case "inline":
		for _, c := range rows {
			m.w.at(50, strings.Join(strings.Fields(d.name(c)+": "+d.value(m, c)+" "+d.unitAt(c, "column")+" "+d.rangeOf(m, c)+" "+d.flagAt(c, "column")), " "))
			m.w.down(1)
			d.trap(m, c, 60)
		}
	case "cards", "tiles":
		side := 2
		if d.form == "tiles" {
			side = 3
		}
		for i := 0; i < len(rows); i += side {
			part := rows[i:min(i+side, len(rows))]
			for _, set := range []func(x float64, c cell){
				func(x float64, c cell) { m.w.at(x, d.name(c)) },
				func(x float64, c cell) { m.w.at(x, strings.TrimSpace(d.value(m, c)+" "+d.unitAt(c, "column"))) },
				func(x float64, c cell) { m.w.at(x, d.rangeOf(m, c)) },
			} {
				for k, c := range part {
					set(45+float64(k)*540/float64(side), c)
				}
				m.w.down(1)
			}
			m.w.down(1.2)
		}
		d.trap(m, rows[0], 50)
	case "two a line":
		for i := 0; i < len(rows); i += 2 {
			for k, c := range rows[i:min(i+2, len(rows))] {
				x := 40 + 290*float64(k)
				m.w.at(x, d.name(c)+":")
				m.w.at(x+135, strings.TrimSpace(d.value(m, c)+" "+d.unitAt(c, "column")))
				m.w.at(x+210, "("+strings.ReplaceAll(c.ref, " ", "")+")")
			}
			m.w.down(1.3)
		}
	case "blocks":
		label := map[string][2]string{"en": {"Result:", "Reference range:"}, "de": {"Ergebnis:", "Referenzbereich:"}, "es": {"Resultado:", "Valores de referencia:"}, "fr": {"Résultat:", "Valeurs de référence:"}}[m.lang]
		for _, c := range rows {
			m.w.at(50, d.name(c))
			m.w.at(280, label[0]+" "+strings.TrimSpace(d.value(m, c)+" "+d.unitAt(c, "column")))
			m.w.down(1)
			m.w.at(280, label[1]+" "+c.ref)
			m.w.down(1.4)
			d.trap(m, c, 60)
		}
	case "prose":
		for i := 0; i < len(rows); i += 2 {
			var parts []string
			for _, c := range rows[i:min(i+2, len(rows))] {
				parts = append(parts, strings.Join(strings.Fields(d.name(c)+" "+d.value(m, c)+" "+d.unitAt(c, "column")+" ("+c.ref+")"), " "))
			}
			m.w.at(40, strings.Join(parts, "; ")+".")
			m.w.down(1.2)
		}
	}
	m.w.down(1)
	d.trap(m, rows[len(rows)-1], 40)
}

func (d design) table(m *maker, rows []cell) {
	var cols []int
	for _, c := range d.cols {
		if c == 2 && d.flag != "column" || c == 3 && d.unit != "column" {
			continue
		}
		cols = append(cols, c)
	}
	wide := map[int]float64{0: 170, 1: 70, 2: 45, 3: 90, 4: 110, 5: 60, 8: 35}
	if d.unit == "value" {
		wide[1] = 130
	}
	xs := make([]float64, len(cols))
	x := 36.0
	for i, c := range cols {
		xs[i] = x
		x += wide[c] * d.size / 10
	}
	h := m.heads()
	head := func() {
		edge := 0.0
		for i, c := range cols {
			edge = m.w.at(max(xs[i], edge+2), h[c])
		}
		m.w.down(1.3)
	}
	head()
	panel := ""
	for _, c := range rows {
		if c.panel != panel {
			panel = c.panel
			m.w.at(xs[0]-4, panel)
			if m.w.down(1.1) {
				head()
			}
		}
		lines := 1.0
		for i, col := range cols {
			switch col {
			case 0:
				words := strings.Fields(d.name(c))
				if d.form == "wrapped" && len(words) > 1 {
					half := (len(words) + 1) / 2
					m.w.at(xs[i], strings.Join(words[:half], " "))
					m.w.put(xs[i], m.w.y+m.w.size*1.2, strings.Join(words[half:], " "))
					lines = 2
				} else {
					m.w.at(xs[i], d.name(c))
				}
			case 1:
				m.w.at(xs[i], strings.TrimSpace(d.value(m, c)+" "+d.unitAt(c, "table")))
			case 2:
				m.w.at(xs[i], d.flagAt(c, "column"))
			case 3:
				m.w.at(xs[i], c.unit)
			case 4:
				m.w.at(xs[i], d.rangeOf(m, c))
			case 5:
				m.w.at(xs[i], c.prev)
			case 8:
				m.w.at(xs[i], strconv.Itoa(100+len(c.name)))
			}
		}
		if m.w.down(lines) {
			head()
		}
		d.trap(m, c, xs[0]+10)
	}
}

func (d design) name(c cell) string {
	if d.unit == "name" && c.unit != "" {
		return c.name + " (" + c.unit + ")"
	}
	return c.name
}

func (d design) value(_ *maker, c cell) string {
	switch {
	case c.flag == "":
	case d.flag == "glued":
		return c.value + " " + c.flag
	case d.flag == "star":
		return "*" + c.value
	case d.flag == "arrow":
		return c.value + " " + map[string]string{"H": "↑", "L": "↓"}[c.flag]
	}
	return c.value
}

func (d design) flagAt(c cell, where string) string {
	if d.flag == where {
		return c.flag
	}
	return ""
}

func (d design) unitAt(c cell, form string) string {
	if d.unit == "name" || form == "table" && d.unit == "column" {
		return ""
	}
	return c.unit
}

func (d design) rangeOf(m *maker, c cell) string {
	switch {
	case d.ref == "bracket":
		return "[" + c.ref + "]"
	case d.ref == "unit":
		return strings.TrimSpace(c.ref + " " + c.unit)
	case d.ref == "words" && c.low == "":
		return map[string]string{"en": "Less than ", "de": "unter ", "es": "Menor de ", "fr": "Inférieur à "}[m.lang] + c.high
	case d.ref == "words" && c.high == "":
		return map[string]string{"en": "> OR = ", "de": "über ", "es": "Mayor de ", "fr": "Supérieur à "}[m.lang] + c.low
	case d.ref == "words":
		return c.low + map[string]string{"en": " to ", "de": " bis ", "es": " a ", "fr": " à "}[m.lang] + c.high
	}
	return c.ref
}

// trap sets lines after a row that are no results. One row in five has them.
func (d design) trap(m *maker, c cell, x float64) {
	if len(d.traps) == 0 || m.r.IntN(5) > 0 {
		return
	}
	at := func(texts map[string][]string) {
		for _, s := range texts[m.lang] {
			if m.comma {
				s = strings.ReplaceAll(s, "0.", "0,")
			}
			m.w.at(x, s)
			m.w.down(1)
		}
	}
	switch d.traps[m.r.IntN(len(d.traps))] {
	case "guidance":
		at([]map[string][]string{
			{"en": {"Optimal > or = 30 ng/mL"}, "de": {"Optimal > 30 ng/ml"}, "es": {"Óptimo > 30 ng/mL"}, "fr": {"Optimal > 30 ng/mL"}},
			{"en": {"Deficiency: <20 ng/mL", "Insufficiency: 20 - 29 ng/mL"}, "de": {"Mangel: < 20 ng/ml", "Unzureichend: 20 - 29 ng/ml"}, "es": {"Deficiencia: < 20 ng/mL", "Insuficiencia: 20 - 29 ng/mL"}, "fr": {"Carence : < 20 ng/mL", "Insuffisance : 20 - 29 ng/mL"}},
			{"en": {"Target for patients with diabetes: <7.0 %"}, "de": {"Zielwert bei Diabetes: < 7 %"}, "es": {"Objetivo en diabetes: < 7 %"}, "fr": {"Objectif diabète : < 7 %"}},
		}[m.r.IntN(3)])
	case "risk":
		at(map[string][]string{
			"en": {"Low risk: <1.0 mg/L", "Average risk: 1.0 - 3.0 mg/L", "High risk: >3.0 mg/L"},
			"de": {"Niedriges Risiko: < 1 mg/l", "Mittleres Risiko: 1 - 3 mg/l", "Hohes Risiko: > 3 mg/l"},
			"es": {"Riesgo bajo: < 1 mg/L", "Riesgo medio: 1 - 3 mg/L", "Riesgo alto: > 3 mg/L"},
			"fr": {"Risque faible : < 1 mg/L", "Risque moyen : 1 - 3 mg/L", "Risque élevé : > 3 mg/L"}})
	case "times":
		at(map[string][]string{"en": {"Collection time 08:15", "Time of last meal 19:30"}, "de": {"Abnahmezeit 08:15 Uhr"}, "es": {"Hora de toma 08:15 h"}, "fr": {"Heure de prélèvement 08:15", "Prélèvement à 8 h 15"}})
	case "previous":
		word := map[string]string{"en": "Previous", "de": "Vorwert", "es": "Anterior", "fr": "Antérieur"}[m.lang]
		m.w.at(x, word+": "+c.prev+" "+c.unit+" (12.03.2024)")
		m.w.down(1)
	case "ages":
		unit := map[string]string{"en": "years", "de": "Jahre", "es": "años", "fr": "ans"}[m.lang]
		m.w.at(x, fmt.Sprintf("18 - 50 %s: %s %s", unit, c.ref, c.unit))
		m.w.down(1)
		m.w.at(x, fmt.Sprintf("> 50 %s: %s %s", unit, c.ref, c.unit))
		m.w.down(1)
	case "notes":
		at(map[string][]string{"en": {"(1) Verified by repeat analysis, 2 runs", "2 Performed at site 14, CLIA 05D1234567"}, "de": {"1) Kontrolle nach 6 Wochen empfohlen", "Methode: ECLIA, Nachweisgrenze 0.5 mg/l"}, "es": {"(1) Repetir en 3 meses", "Límite de detección 0.5 mg/L"}, "fr": {"(1) Contrôle à 6 semaines", "Limite de détection 0.5 mg/L"}})
	}
}

// misread makes pages as a reader of pictures returns them: letters of units and names that
// look alike are confused, decimal points are lost.
func misread(pages []labreport.Page, r *rand.Rand) []labreport.Page {
	swap := map[rune][]string{'µ': {"u", "p", "v"}, 'u': {"v", "µ"}, 'l': {"1", "I"}, 'L': {"l"}, '1': {"l"}, 'I': {"l", "1"}, '0': {"O"}, 'O': {"0"}, 'g': {"q"}, '/': {"l"}, 'é': {"e"}, 'ä': {"a"}, 'm': {"rn"}}
	out := make([]labreport.Page, len(pages))
	for i, p := range pages {
		p.Image = true
		words := make([]labreport.Word, len(p.Words))
		for k, w := range p.Words {
			w.Confidence = 0.88 + 0.09*r.Float64()
			letters := []rune(w.Text)
			digits := strings.IndexFunc(w.Text, func(c rune) bool { return c >= '0' && c <= '9' }) == 0
			switch {
			case digits && strings.ContainsAny(w.Text, ".,") && r.IntN(60) == 0:
				w.Text = strings.NewReplacer(".", "", ",", "").Replace(w.Text)
			case !digits && r.IntN(12) == 0:
				at := r.IntN(len(letters))
				if s, ok := swap[letters[at]]; ok {
					w.Text = string(letters[:at]) + s[r.IntN(len(s))] + string(letters[at+1:])
					w.Confidence -= 0.15 * r.Float64()
				}
			}
			w.Box.X += (r.Float64() - 0.5) * 0.001
			w.Box.Y += (r.Float64() - 0.5) * 0.001
			words[k] = w
		}
		p.Words = words
		out[i] = p
	}
	return out
}

// score adds to a tally how often auto_match is wrong: in value, unit, row or code.
type score struct {
	tally
	auto, autoWrong, invented int
	firm, firmWrong           int // values read with 0.85 or more
}

func (s *score) String() string {
	return fmt.Sprintf("%s; auto_match %d, wrong %d; values at 0.85 %d, wrong %d; invented rows %d", s.tally.String(), s.auto, s.autoWrong, s.firm, s.firmWrong, s.invented)
}

// match reports whether a result has the value, unit and code of one of the rows. Units
// that mean the same are equal.
func (s *score) match(r report, d labreport.Data) {
	for _, g := range d.Results {
		auto := g.LoincMatchStatus != nil && *g.LoincMatchStatus == labreport.AutoMatch
		firm := g.Evidence["value"].Confidence >= 0.85
		named, value, right := false, false, false
		for _, w := range r.rows {
			if !like(g.TestName, w.name) && !(r.picture && strings.HasPrefix(strings.ToLower(g.TestName), strings.ToLower(w.name))) {
				continue
			}
			named = true
			got := ""
			if g.Units != nil {
				got = *g.Units
			}
			if g.Value != w.value {
				continue
			}
			value = true
			if meansSame(got, w.unit) && len(g.LoincMatches) > 0 && strings.Contains(strings.Join(w.codes, " "), g.LoincMatches[0].LoincCode) {
				right = true
			}
		}
		if !named {
			s.invented++
		}
		if auto {
			s.auto++
			if !right {
				s.autoWrong++
				u := ""
				if g.Units != nil {
					u = *g.Units
				}
				s.misses = append(s.misses, fmt.Sprintf("%s: auto_match is wrong: %s = %s %s %s", r.layout, g.TestName, g.Value, u, g.LoincMatches[0].LoincName))
			}
		}
		if firm {
			s.firm++
			if !value {
				s.firmWrong++
				s.misses = append(s.misses, fmt.Sprintf("%s: firm but wrong: %s = %s", r.layout, g.TestName, g.Value))
			}
		}
	}
}

func meansSame(a, b string) bool {
	u, ok1 := ucum.Parse(a)
	v, ok2 := ucum.Parse(b)
	n, ok := u.Factor(v)
	return a == b || ok1 && ok2 && (u == v || ok && n > 0.999 && n < 1.001)
}

// like compares names but for one letter in six.
func like(a, b string) bool {
	x, y := []rune(strings.ToLower(strings.Join(strings.Fields(a), " "))), []rune(strings.ToLower(strings.Join(strings.Fields(b), " ")))
	row := make([]int, len(y)+1)
	for k := range row {
		row[k] = k
	}
	for i := range x {
		last := row[0]
		row[0] = i + 1
		for k := range y {
			cost := last
			if x[i] != y[k] {
				cost++
			}
			last = row[k+1]
			row[k+1] = min(cost, row[k]+1, last+1)
		}
	}
	return row[len(y)]*6 <= max(len(x), len(y), 6)
}

// runDesigns reads the reports of a set in all languages, in a plain run each design in one of them.
// picture says that they are read as pictures.
func runDesigns(t *testing.T, blind, picture bool, each int) score {
	t.Helper()
	reader := labreport.NewReader(nil)
	all := score{}
	byLanguage := map[string]*score{}
	number := 0
	for _, d := range designs() {
		if d.blind() != blind {
			continue
		}
		sum := score{}
		number++
		if number%prove.Stride(4) != 0 {
			continue
		}
		for i := range prove.Sequential(1, len(languages), len(languages)) {
			lang := languages[(number/prove.Stride(4)+i)%len(languages)]
			part := score{}
			for k := range each {
				r := generateIn(d.String(), lang, d.set, uint64(d.number*1000+k))
				if picture {
					r.picture, r.pages = true, misread(r.pages, rand.New(rand.NewPCG(uint64(d.number), uint64(k))))
				}
				data, _ := reader.Read(r.pages)
				part.add(check(r, data))
				part.match(r, data)
			}
			if byLanguage[lang] == nil {
				byLanguage[lang] = &score{}
			}
			byLanguage[lang].join(part)
			sum.join(part)
		}
		if !blind {
			t.Log(d.String(), sum.String())
			for i, miss := range sum.misses {
				if (i < 12 || strings.Contains(miss, "auto_match")) && testing.Verbose() {
					t.Log("    ", miss)
				}
			}
		}
		all.join(sum)
	}
	for _, lang := range languages {
		t.Log(lang, byLanguage[lang].String())
	}
	t.Log("all", all.String())
	return all
}

func (s *score) join(o score) {
	s.add(o.tally)
	s.auto, s.autoWrong, s.invented = s.auto+o.auto, s.autoWrong+o.autoWrong, s.invented+o.invented
	s.firm, s.firmWrong = s.firm+o.firm, s.firmWrong+o.firmWrong
}

// Layouts by parameters in four languages, as text and as pictures. The blind layouts are
// those that no rule is tuned on.
func TestLayouts_generatedDesignsAreReadWithFewErrors(t *testing.T) {
	t.Parallel()
	for name, blind := range map[string]bool{"development": false, "blind": true} {
		t.Run(name, func(t *testing.T) {
			t.Run("text", func(t *testing.T) {
				s := runDesigns(t, blind, false, prove.Count(1, 10))
				require.GreaterOrEqual(t, s.f1(), 0.985)
				require.LessOrEqual(t, s.sureWrong*500, s.sure)
				require.LessOrEqual(t, s.autoWrong*200, s.auto)
				require.LessOrEqual(t, s.invented*200, s.got)
			})
			t.Run("pictures", func(t *testing.T) {
				s := runDesigns(t, blind, true, prove.Count(1, 10))
				require.GreaterOrEqual(t, s.f1(), 0.95)
				require.LessOrEqual(t, s.autoWrong*200, s.auto)
				require.LessOrEqual(t, s.firmWrong*200, s.firm)
				require.LessOrEqual(t, s.invented*200, s.got)
			})
		})
	}
}
