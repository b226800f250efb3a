package labreport_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/healthlab-dev/healthlab/labreport"
)

// This file writes lab reports of invented people and laboratories as words with
// boxes, together with what a reader should find. The layouts are ways in which
// tables of results are set in general.

// want is one result that a report holds.
type want struct {
	name, value, unit string
	low, high         *float64
	codes             []string
	abnormal          bool
	words             bool // the value is in words
}

// report is one generated report.
type report struct {
	layout                                                       string
	pages                                                        []labreport.Page
	rows                                                         []want
	picture                                                      bool // read as a picture: units count by what they mean
	first, last, dob, gender, lab, collected, reported, specimen string
}

// analyte is what the generator knows of a marker: names by language, a unit, a
// range, decimals.
type analyte struct {
	en, de, es, fr string
	unit           string
	low, high      float64 // NaN is open
	dec            int
	codes          string
}

var open = math.NaN()

var analytes = map[string][]analyte{
	"Basic Metabolic Panel": {
		{"Glucose", "Glukose", "Glucosa", "Glucose", "mg/dL", 70, 99, 0, "2345-7 2339-0"},
		{"Urea Nitrogen (BUN)", "Harnstoff-N", "Nitrógeno ureico", "Azote uréique", "mg/dL", 7, 25, 0, "3094-0"},
		{"Creatinine", "Kreatinin", "Creatinina", "Créatinine", "mg/dL", 0.6, 1.3, 2, "2160-0"},
		{"Sodium", "Natrium", "Sodio", "Sodium", "mmol/L", 135, 146, 0, "2951-2"},
		{"Potassium", "Kalium", "Potasio", "Potassium", "mmol/L", 3.5, 5.3, 1, "2823-3"},
		{"Chloride", "Chlorid", "Cloruro", "Chlorure", "mmol/L", 98, 110, 0, "2075-0"},
		{"Calcium", "Calcium", "Calcio", "Calcium", "mg/dL", 8.6, 10.3, 1, "17861-6"},
		{"eGFR", "eGFR (CKD-EPI)", "Filtrado glomerular (CKD-EPI)", "DFG estimé (CKD-EPI)", "mL/min/1.73m2", 60, open, 0, "98979-8 62238-1 33914-3 48642-3 77147-7"},
	},
	"Lipid Panel": {
		{"Cholesterol, Total", "Cholesterin gesamt", "Colesterol total", "Cholestérol total", "mg/dL", open, 200, 0, "2093-3"},
		{"HDL Cholesterol", "HDL-Cholesterin", "Colesterol HDL", "Cholestérol HDL", "mg/dL", 40, open, 0, "2085-9"},
		{"LDL Cholesterol", "LDL-Cholesterin", "Colesterol LDL", "Cholestérol LDL", "mg/dL", open, 100, 0, "13457-7 2089-1 18262-6"},
		{"Triglycerides", "Triglyceride", "Triglicéridos", "Triglycérides", "mg/dL", open, 150, 0, "2571-8"},
		{"Non-HDL Cholesterol", "Non-HDL-Cholesterin", "Colesterol no HDL", "Cholestérol non HDL", "mg/dL", open, 130, 0, "43396-1"},
	},
	"Complete Blood Count": {
		{"WBC", "Leukozyten", "Leucocitos", "Leucocytes", "10^3/uL", 3.8, 10.8, 1, "6690-2 26464-8"},
		{"RBC", "Erythrozyten", "Hematíes", "Hématies", "10^6/uL", 4.2, 5.8, 2, "789-8 26453-1"},
		{"Hemoglobin", "Hämoglobin", "Hemoglobina", "Hémoglobine", "g/dL", 13.2, 17.1, 1, "718-7"},
		{"Hematocrit", "Hämatokrit", "Hematocrito", "Hématocrite", "%", 38.5, 50, 1, "4544-3 20570-8"},
		{"MCV", "MCV", "VCM", "VGM", "fL", 80, 100, 1, "787-2 30428-7"},
		{"MCH", "MCH", "HCM", "TCMH", "pg", 27, 33, 1, "785-6 28539-5"},
		{"MCHC", "MCHC", "CHCM", "CCMH", "g/dL", 32, 36, 1, "786-4 28540-3"},
		{"RDW", "EVB (RDW)", "ADE", "IDR", "%", 11, 15, 1, "788-0 30385-9"},
		{"Platelets", "Thrombozyten", "Plaquetas", "Plaquettes", "10^3/uL", 140, 400, 0, "777-3 26515-7"},
		{"MPV", "MPV", "VPM", "VPM", "fL", 7.5, 12.5, 1, "32623-1 28542-9"},
		{"Neutrophils", "Neutrophile", "Neutrófilos", "Polynucléaires neutrophiles", "%", 40, 75, 1, "770-8 26511-6"},
		{"Absolute Neutrophils", "Neutrophile absolut", "Neutrófilos absolutos", "Neutrophiles absolus", "/uL", 1500, 7800, 0, "751-8 26499-4"},
		{"Lymphocytes", "Lymphozyten", "Linfocitos", "Lymphocytes", "%", 20, 45, 1, "736-9 26478-8"},
		{"Absolute Lymphocytes", "Lymphozyten absolut", "Linfocitos absolutos", "Lymphocytes absolus", "/uL", 850, 3900, 0, "731-0 26474-7"},
		{"Monocytes", "Monozyten", "Monocitos", "Monocytes", "%", 2, 10, 1, "5905-5 26485-3"},
		{"Eosinophils", "Eosinophile", "Eosinófilos", "Éosinophiles", "%", 0, 6, 1, "713-8 26450-7"},
		{"Basophils", "Basophile", "Basófilos", "Basophiles", "%", 0, 2, 1, "706-2 30180-4"},
	},
	"Liver Panel": {
		{"Bilirubin, Total", "Bilirubin gesamt", "Bilirrubina total", "Bilirubine totale", "mg/dL", 0.2, 1.2, 1, "1975-2"},
		{"Bilirubin, Direct", "Bilirubin direkt", "Bilirrubina directa", "Bilirubine conjuguée", "mg/dL", open, 0.3, 1, "1968-7"},
		{"AST (SGOT)", "GOT (ASAT)", "GOT (AST)", "ASAT (TGO)", "U/L", 10, 40, 0, "1920-8"},
		{"ALT (SGPT)", "GPT (ALAT)", "GPT (ALT)", "ALAT (TGP)", "U/L", 9, 46, 0, "1742-6"},
		{"Alkaline Phosphatase", "Alkalische Phosphatase", "Fosfatasa alcalina", "Phosphatases alcalines", "U/L", 36, 130, 0, "6768-6"},
		{"GGT", "Gamma-GT", "Gamma-GT", "Gamma-GT", "U/L", 3, 70, 0, "2324-2"},
		{"Albumin", "Albumin", "Albúmina", "Albumine", "g/dL", 3.6, 5.1, 1, "1751-7"},
		{"Protein, Total", "Gesamteiweiß", "Proteínas totales", "Protéines totales", "g/dL", 6.1, 8.1, 1, "2885-2"},
	},
	"Thyroid": {
		{"TSH", "TSH basal", "TSH", "TSH", "mIU/L", 0.4, 4.5, 2, "3016-3 11580-8 11579-0"},
		{"T4, Free", "Freies T4", "T4 libre", "T4 libre", "ng/dL", 0.8, 1.8, 1, "3024-7"},
		{"T3, Free", "Freies T3", "T3 libre", "T3 libre", "pg/mL", 2.3, 4.2, 1, "3051-0"},
	},
	"Vitamins and Iron": {
		{"Vitamin B12", "Vitamin B12", "Vitamina B12", "Vitamine B12", "pg/mL", 200, 1100, 0, "2132-9"},
		{"Folate", "Folsäure", "Ácido fólico", "Folates", "ng/mL", 5.4, open, 1, "2284-8"},
		{"Vitamin D, 25-Hydroxy", "25-OH-Vitamin D", "Vitamina D (25-OH)", "Vitamine D (25-OH)", "ng/mL", 30, 100, 0, "62292-8 1989-3"},
		{"Ferritin", "Ferritin", "Ferritina", "Ferritine", "ng/mL", 38, 380, 0, "2276-4 20567-4"},
		{"Iron, Total", "Eisen", "Hierro", "Fer sérique", "ug/dL", 50, 180, 0, "2498-4"},
		{"Magnesium", "Magnesium", "Magnesio", "Magnésium", "mg/dL", 1.5, 2.5, 1, "19123-9"},
		{"CRP", "CRP", "Proteína C reactiva", "Protéine C réactive", "mg/L", open, 8, 1, "1988-5"},
		{"Hemoglobin A1c", "HbA1c", "Hemoglobina glicosilada", "HbA1c", "%", open, 5.7, 1, "4548-4 17856-6"},
		{"Uric Acid", "Harnsäure", "Ácido úrico", "Acide urique", "mg/dL", 4, 8, 1, "3084-1"},
		{"INR", "INR", "INR", "INR", "", 0.9, 1.1, 1, "6301-6 34714-6"},
	},
}

var panelOrder = []string{"Basic Metabolic Panel", "Lipid Panel", "Complete Blood Count", "Liver Panel", "Thyroid", "Vitamins and Iron"}

// writer sets words on pages of 612 by 792 points.
type writer struct {
	pages []labreport.Page
	y     float64
	size  float64
	mono  bool
}

func newWriter(size float64) *writer {
	w := &writer{size: size}
	w.page()
	return w
}

func (w *writer) page() {
	w.pages = append(w.pages, labreport.Page{Number: len(w.pages) + 1, Width: 612, Height: 792})
	w.y = 50
}

// wide is the width of a text in points, near enough to a common sans serif.
func (w *writer) wide(s string) float64 {
	if w.mono {
		return 0.6 * w.size * float64(len([]rune(s)))
	}
	n := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtf.,:;|!'()[] -I/", r):
			n += 0.3
		case strings.ContainsRune("mwMW%@", r):
			n += 0.85
		case r >= 'A' && r <= 'Z':
			n += 0.68
		default:
			n += 0.54
		}
	}
	return n * w.size
}

func (w *writer) at(x float64, s string) float64 { return w.put(x, w.y, s) }

func (w *writer) put(x, y float64, s string) float64 {
	p := &w.pages[len(w.pages)-1]
	for _, word := range strings.Split(s, " ") {
		if word != "" {
			p.Words = append(p.Words, labreport.Word{Text: word, Confidence: 1, Box: labreport.Box{
				X: x / 612, Y: y / 792, Width: w.wide(word) / 612, Height: w.size * 1.15 / 792}})
		}
		x += w.wide(word + " ")
	}
	return x
}

func (w *writer) right(x float64, s string) { w.at(x-w.wide(s), s) }

// down goes to the next line, and to the next page at the end of one.
func (w *writer) down(lines float64) bool {
	w.y += lines * w.size * 1.45
	if w.y > 740 {
		w.page()
		return true
	}
	return false
}

// maker makes one report.
type maker struct {
	r     *rand.Rand
	w     *writer
	out   *report
	lang  string
	comma bool
	// panels are those that results come from, in this order; nil means panelOrder.
	panels []string
}

func (m *maker) pick(s ...string) string { return s[m.r.IntN(len(s))] }

func (m *maker) name(a analyte) string {
	switch m.lang {
	case "de":
		return a.de
	case "es":
		return a.es
	case "fr":
		return a.fr
	}
	return a.en
}

func (m *maker) num(v float64, dec int) string {
	s := fmt.Sprintf("%.*f", dec, v)
	if m.comma {
		s = strings.ReplaceAll(s, ".", ",")
	}
	return s
}

// unit writes a unit as reports of the language do.
func (m *maker) unit(u string) string {
	var forms []string
	switch u {
	case "10^3/uL":
		forms = map[string][]string{"en": {"10^3/uL", "K/uL", "x10E3/uL", "Thousand/uL", "10*3/uL"}, "de": {"Tsd/µl", "/nl", "Tsd./µl"}, "es": {"10^3/µL", "x10^3/µL", "miles/mm3"}, "fr": {"10^3/mm3", "G/L", "10^9/L"}}[m.lang]
	case "10^6/uL":
		forms = map[string][]string{"en": {"10^6/uL", "M/uL", "x10E6/uL", "Million/uL"}, "de": {"Mio/µl", "/pl", "Mio./µl"}, "es": {"10^6/µL", "x10^6/µL"}, "fr": {"10^6/mm3", "T/L"}}[m.lang]
	case "/uL":
		forms = map[string][]string{"en": {"cells/uL", "/uL"}, "de": {"/µl"}, "es": {"/µL", "/mm3"}, "fr": {"/mm3"}}[m.lang]
	case "mg/dL", "g/dL":
		forms = []string{u}
		if m.lang != "en" {
			forms = []string{u, strings.ToLower(u)}
		}
	case "ug/dL":
		forms = []string{"ug/dL", "mcg/dL", "µg/dL"}
	case "U/L":
		forms = map[string][]string{"en": {"U/L", "IU/L"}, "de": {"U/l", "U/L"}, "es": {"U/L", "UI/L"}, "fr": {"UI/L", "U/L"}}[m.lang]
	case "mL/min/1.73m2":
		forms = []string{"mL/min/1.73m2", "mL/min/1,73 m²"}[:1]
		if m.comma {
			forms = []string{"ml/min/1,73m²"}
		}
	case "mIU/L":
		forms = map[string][]string{"en": {"mIU/L", "uIU/mL"}, "de": {"mU/l", "µU/ml"}, "es": {"µUI/mL", "mUI/L"}, "fr": {"mUI/L"}}[m.lang]
	default:
		forms = []string{u}
	}
	return forms[m.r.IntN(len(forms))]
}

// cell is a result as the layouts set it.
type cell struct {
	a                            analyte
	name, value, unit, ref, flag string
	low, high                    string
	prev                         string
	panel                        string
}

// results draws panels and values, and notes what is to be found.
func (m *maker) results(n int) []cell {
	var out []cell
	panels := m.panels
	if panels == nil {
		panels = panelOrder
	}
	start := m.r.IntN(len(panels))
	units := map[string]string{}
	for k := 0; len(out) < n && k < len(panels); k++ {
		panel := panels[(start+k)%len(panels)]
		for _, a := range append(analytes[panel], rareAnalytes[panel]...) {
			if len(out) >= n {
				break
			}
			if m.r.IntN(8) == 0 {
				continue
			}
			low, high := a.low, a.high
			lo, hi := low, high
			if math.IsNaN(lo) {
				lo = high * 0.4
			}
			if math.IsNaN(hi) {
				hi = low * 1.8
			}
			v := lo + (hi-lo)*(0.08+0.84*m.r.Float64())
			switch m.r.IntN(6) {
			case 0:
				if !math.IsNaN(high) {
					v = hi * (1.1 + m.r.Float64())
				}
			case 1:
				if !math.IsNaN(low) && low > 0 {
					v = lo * (0.5 + 0.35*m.r.Float64())
				}
			}
			c := cell{a: a, name: m.name(a), panel: panel, value: m.num(v, a.dec)}
			if _, ok := units[a.unit]; !ok && a.unit != "" {
				units[a.unit] = m.unit(a.unit)
			}
			c.unit = units[a.unit]
			// The printed value decides.
			var shown float64
			fmt.Sscanf(strings.ReplaceAll(c.value, ",", "."), "%g", &shown)
			state := 0
			if !math.IsNaN(high) && shown > high || math.IsNaN(low) && shown == high {
				state = 1
			}
			if !math.IsNaN(low) && shown < low {
				state = -1
			}
			if math.IsNaN(low) && shown == high { // "<" excludes its end; avoid the border
				shown = high * 0.5
				c.value, state = m.num(shown, a.dec), 0
				fmt.Sscanf(strings.ReplaceAll(c.value, ",", "."), "%g", &shown)
			}
			if math.IsNaN(high) && shown == low {
				c.value, state = m.num(low*1.5, a.dec), 0
			}
			if !math.IsNaN(low) {
				c.low = m.num(low, a.dec)
			}
			if !math.IsNaN(high) {
				c.high = m.num(high, a.dec)
			}
			switch {
			case c.low == "":
				c.ref = "<" + m.pick("", " ") + c.high
			case c.high == "":
				c.ref = m.pick(">=", "> ", ">= ", ">") + c.low
			default:
				c.ref = c.low + m.pick("-", " - ", " – ") + c.high
			}
			c.flag = map[int]string{0: "", 1: "H", -1: "L"}[state]
			c.prev = m.num(v*(0.7+0.5*m.r.Float64()), a.dec)
			w := want{name: c.name, value: strings.ReplaceAll(c.value, ",", "."), unit: c.unit, codes: strings.Fields(a.codes), abnormal: state != 0}
			if c.low != "" {
				w.low = &a.low
			}
			if c.high != "" {
				w.high = &a.high
			}
			m.out.rows = append(m.out.rows, w)
			out = append(out, c)
		}
	}
	return out
}

var (
	firstNames = []string{"Amara", "Stefan", "Lucia", "Hiroshi", "Priya", "Claire", "Mateo", "Ingrid", "Kwame", "Elena", "Omar", "Sophie"}
	lastNames  = []string{"Weber", "Delgado Ruiz", "Fournier", "Okafor", "Lindqvist", "Moreau", "Baumgart", "Hartley", "Nakamura", "Castellanos"}
	labNames   = map[string][]string{"en": {"Northfield Clinical Laboratory", "Blue Harbor Diagnostics", "Maple Street Lab"}, "de": {"Labor Musterstadt", "MVZ Laborzentrum Beispielhausen"}, "es": {"Laboratorio Valle Verde", "Laboratorios del Sur"}, "fr": {"Laboratoire des Tilleuls", "Laboratoire de Biologie Exemple"}}
)

// front sets the top of the report in one of several styles.
func (m *maker) front(style int) {
	o := m.out
	o.first, o.last = firstNames[m.r.IntN(len(firstNames))], lastNames[m.r.IntN(len(lastNames))]
	y, mo, d := 1940+m.r.IntN(65), 1+m.r.IntN(12), 1+m.r.IntN(28)
	o.dob = fmt.Sprintf("%04d-%02d-%02d", y, mo, d)
	cm, cd := 1+m.r.IntN(12), 13+m.r.IntN(12)
	o.collected = fmt.Sprintf("2025-%02d-%02d", cm, cd)
	o.reported = fmt.Sprintf("2025-%02d-%02d", cm, cd+2)
	o.gender = m.pick("male", "female")
	o.lab = labNames[m.lang][m.r.IntN(len(labNames[m.lang]))]
	o.specimen = fmt.Sprintf("%s%07d", m.pick("S", "LX", "A", "QT"), m.r.IntN(9000000)+1000000)
	months := []string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
	date := func(s string) string {
		var y, mo, d int
		fmt.Sscanf(s, "%d-%d-%d", &y, &mo, &d)
		switch m.lang {
		case "de":
			return fmt.Sprintf("%02d.%02d.%04d", d, mo, y)
		case "es", "fr":
			return fmt.Sprintf("%02d/%02d/%04d", d, mo, y)
		}
		switch style % 3 {
		case 0:
			return fmt.Sprintf("%02d/%02d/%04d", mo, d, y)
		case 1:
			return fmt.Sprintf("%02d %s %04d", d, months[mo-1], y)
		}
		return s
	}
	l := map[string][]string{
		"en": {"Patient", "DOB", "Sex", "Collected", "Reported", "Specimen", "LABORATORY REPORT"},
		"de": {"Patient", "Geburtsdatum", "Geschlecht", "Abnahme", "Befunddatum", "Labor-Nr.", "LABORBEFUND"},
		"es": {"Paciente", "Fecha de nacimiento", "Sexo", "Fecha de toma", "Fecha de emisión", "Muestra", "INFORME DE RESULTADOS"},
		"fr": {"Patient", "Date de naissance", "Sexe", "Prélevé le", "Édité le", "Dossier", "COMPTE RENDU D'ANALYSES"},
	}[m.lang]
	sex := map[string][2]string{"en": {"Male", "Female"}, "de": {"männlich", "weiblich"}, "es": {"Hombre", "Mujer"}, "fr": {"Masculin", "Féminin"}}[m.lang]
	g := sex[0]
	if o.gender == "female" {
		g = sex[1]
	}
	full := o.first + " " + o.last
	if style%2 == 1 {
		full = o.last + ", " + o.first
	}
	w := m.w
	big := w.size
	w.size = big * 1.5
	w.at(50, o.lab)
	w.down(1.2)
	w.size = big
	w.at(50, l[6])
	w.down(1.5)
	switch style {
	case 0: // two columns of labels
		pairs := [][2]string{{l[0], full}, {l[3], date(o.collected)}, {l[1], date(o.dob)}, {l[4], date(o.reported)}, {l[2], g}, {l[5], o.specimen}}
		for i := 0; i < len(pairs); i += 2 {
			w.at(50, pairs[i][0]+": "+pairs[i][1])
			w.at(330, pairs[i+1][0]+": "+pairs[i+1][1])
			w.down(1)
		}
	case 1: // labels in a column of their own
		for _, p := range [][2]string{{l[0], full}, {l[1], date(o.dob)}, {l[2], g}, {l[5], o.specimen}, {l[3], date(o.collected)}, {l[4], date(o.reported)}} {
			w.at(50, p[0]+":")
			w.at(190, p[1])
			w.down(1)
		}
	case 2: // labels over their values
		x := []float64{50, 160, 270, 330, 420, 510}
		for i, p := range []string{l[0], l[5], l[2]} {
			w.at(x[2*i], p)
		}
		w.down(1)
		for i, p := range []string{full, o.specimen, g} {
			w.at(x[2*i], p)
		}
		w.down(1.2)
		for i, p := range []string{l[1], l[3], l[4]} {
			w.at(x[2*i], p)
		}
		w.down(1)
		for i, p := range []string{date(o.dob), date(o.collected), date(o.reported)} {
			w.at(x[2*i], p)
		}
		w.down(1)
	}
	w.down(1)
}

// heads are headings of columns by language: name, value, flag, unit, range,
// previous, low, high, code.
var heads = map[string][][]string{
	"en": {{"Test", "Result", "Flag", "Units", "Reference Range", "Previous", "Low", "High", "Lab"}, {"Component", "Value", "Status", "Unit", "Reference Interval", "Prior Result", "Lower", "Upper", "Site"}, {"Analyte", "Your Value", "Flag", "Units", "Standard Range", "Last Result", "Min", "Max", "Code"}},
	"de": {{"Untersuchung", "Ergebnis", "Hinweis", "Einheit", "Referenzbereich", "Vorwert", "Untergrenze", "Obergrenze", "Labor"}, {"Parameter", "Wert", "Bewertung", "Einheit", "Normbereich", "Vorbefund", "von", "bis", "Code"}},
	"es": {{"Prueba", "Resultado", "Indicador", "Unidades", "Valores de referencia", "Anterior", "Mínimo", "Máximo", "Código"}, {"Determinación", "Valor", "Alerta", "Unidad", "Rango normal", "Anterior", "Mínimo", "Máximo", "Código"}},
	"fr": {{"Analyse", "Résultat", "Alerte", "Unités", "Valeurs de référence", "Antérieur", "Mini", "Maxi", "Code"}, {"Examen", "Valeur", "Statut", "Unité", "Intervalle de référence", "Antériorité", "Mini", "Maxi", "Code"}},
}

func (m *maker) heads() []string { h := heads[m.lang]; return h[m.r.IntN(len(h))] }

// tabular sets a table: cols are indexes into heads with their x; panels are
// headings between the rows.
func (m *maker) tabular(rows []cell, cols []int, xs []float64, rightValue bool, field func(c cell, col int) string) {
	h := m.heads()
	head := func() {
		edge := 0.0
		for i, c := range cols {
			if c == 1 && rightValue {
				m.w.right(xs[i]+30, h[c])
				edge = xs[i] + 30
			} else {
				edge = m.w.at(max(xs[i], edge+2), h[c])
			}
		}
		m.w.down(1.2)
	}
	head()
	panel := ""
	for _, c := range rows {
		if c.panel != panel {
			panel = c.panel
			m.w.at(xs[0]-8, panel)
			if m.w.down(1.1) {
				head()
			}
		}
		for i, col := range cols {
			s := field(c, col)
			if col == 1 && rightValue {
				m.w.right(xs[i]+30, s)
			} else if s != "" {
				m.w.at(xs[i], s)
			}
		}
		if m.w.down(1) {
			head()
		}
	}
}

func plainField(c cell, col int) string {
	switch col {
	case 0:
		return c.name
	case 1:
		return c.value
	case 2:
		return c.flag
	case 3:
		return c.unit
	case 4:
		return c.ref
	case 5:
		return c.prev
	case 6:
		return c.low
	case 7:
		return c.high
	case 8:
		return "01"
	}
	return ""
}

// qualitative draws results in words.
func (m *maker) qualitative(set func(name, value, expected, flag string)) {
	for _, q := range []struct{ name, good, bad, codes string }{
		{"Hepatitis B Surface Antigen", "Non-Reactive", "Reactive", "5196-1 5195-3 63557-3"},
		{"Hepatitis C Antibody", "Non-Reactive", "Reactive", "13955-0 16128-1 5199-5"},
		{"HIV Ag/Ab, 4th Gen", "Non-Reactive", "Reactive", "56888-1"},
		{"RPR", "Non-Reactive", "Reactive", "20507-0 22461-8"},
		{"SARS-CoV-2 RNA", "Not Detected", "Detected", "94500-6 94309-2"},
		{"Urine Glucose", "Negative", "2+", "5792-7 25428-4 2349-9 50555-2"},
		{"Urine Ketones", "Negative", "Trace", "2514-8 5797-6 33903-6 50557-8"},
		{"Urine Protein", "Negative", "1+", "5804-0 20454-5 2887-8 50561-0 57735-3"},
		{"Urine Nitrite", "Negative", "Positive", "5802-4 50558-6 32710-6"},
		{"Leukocyte Esterase", "Negative", "Positive", "5799-2 60026-2"},
	} {
		w := want{name: q.name, value: q.good, codes: strings.Fields(q.codes), words: true}
		flag := ""
		if m.r.IntN(4) == 0 {
			w.value, w.abnormal, flag = q.bad, true, "A"
		}
		m.out.rows = append(m.out.rows, w)
		set(q.name, w.value, q.good, flag)
	}
}

// generate makes one report of a layout.
func generate(name string, layout func(*maker), seed uint64) report {
	r := rand.New(rand.NewPCG(seed, 77))
	m := &maker{r: r, w: newWriter(9 + float64(r.IntN(3))), out: &report{layout: name}}
	m.lang = []string{"en", "en", "de", "es", "fr"}[r.IntN(5)]
	m.comma = m.lang != "en"
	layout(m)
	m.out.pages = m.w.pages
	return *m.out
}

func generateIn(name, lang string, layout func(*maker), seed uint64) report {
	m := &maker{r: rand.New(rand.NewPCG(seed, 78)), w: newWriter(10), out: &report{layout: name + " " + lang}, lang: lang, comma: lang != "en"}
	layout(m)
	m.out.pages = m.w.pages
	return *m.out
}
