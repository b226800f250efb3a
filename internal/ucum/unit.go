package ucum

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/fold"
)

//go:embed data/ucum_lab_units.csv
var unitsCSV string

// Unit is a unit of measure with its UCUM code.
type Unit struct {
	// UCUM is the code of the Unified Code for Units of Measure: "10*3/uL".
	UCUM string
	// kind is the LOINC property of the unit: the kind of quantity that it measures.
	kind string
}

// Kind returns the kind of quantity that the unit measures, as a LOINC property such as "mass"; empty for the zero
// Unit.
func (u Unit) Kind() string { return u.kind }

// Parse returns the unit in a text that laboratories print ("Tsd./µl", "x10E3/uL", "mcg/dL", "UI/L"); false if it
// is unknown. The letter case counts only where it changes the meaning: G/L is 10*9/L, and g/L is grams per litre.
func Parse(printed string) (Unit, bool) {
	return units().parse(printed)
}

// form is a printed unit in lower case (text), and its text with similar glyphs made equal (look).
type form struct{ text, look string }

type printedUnits struct {
	exact  map[string]string // UCUM codes by printed unit
	folded map[string]string // UCUM codes by printed unit in lower case
	// byLength has the keys of folded by their length, for the repair of misread units.
	byLength map[int][]form
	// cased maps keys of folded to the form that is usually printed.
	cased map[string]string
	// forms maps UCUM codes to printed forms in lower case, in which "mcg" is not replaced by "ug".
	forms map[string][]string
}

var units = sync.OnceValue(func() *printedUnits {
	t, err := loadUnits(strings.NewReader(unitsCSV))
	if err != nil {
		panic("ucum: embedded units: " + err.Error())
	}
	return t
})

// moreUnits maps UCUM codes to printed forms, separated by |, that the embedded table lacks: in other languages, or
// with other ways to write a power of ten.
var moreUnits = map[string]string{
	"10*3/uL": "tsd/ul|tsd./ul|tausend/ul|x10*3/ul|10e3/ul|x10e3/mcl|k/cumm|k/cu mm|x1000/ul|thousand/mcl|thousand/cumm|10^3/mm3|x10^3/mm3|x10^3/mcl|x103/ul|103/ul|x10 3/ul|10 3/ul|thous/ul|th/ul|miles/ul|10e3/mm3|x10(3)/ul|1000/ul|103/mm3|x103/mm3|k/ml|k/mcl|thou/mcl|milliers/mm3|giga/l|tys/ul|10**3/ul",
	"10*6/uL": "mio/ul|mio./ul|mill/ul|mill./ul|million/mcl|million/cumm|millones/ul|mill/cumm|x10*6/ul|10e6/ul|x10e6/mcl|10^6/mm3|x10^6/mm3|x10^6/mcl|x106/ul|106/ul|x10 6/ul|10 6/ul|x10(6)/ul|x106/mm3|106/mm3|m/mcl|m/cumm|mill/mcl|millions/mm3|millions/ul|10**6/ul|mln/ul",
	"10*9/L":  "x10*9/l|10e9/l|x109/l|109/l|x10 9/l|10 9/l|x10(9)/l|giga/l|10**9/l|x10e9/l|gpt/l",
	"10*12/L": "x10*12/l|10e12/l|x1012/l|1012/l|x10 12/l|10 12/l|x10(12)/l|tera/l|10**12/l|tpt/l",
	"/uL":     "#/ul|cells/mm3|zellen/ul|celulas/ul|cel/ul|cellules/ul|cellules/mm3|/mcl|/cmm|cells/cmm|cell/ul|celulas/mm3|per ul|n/ul",
	"/[HPF]":  "/hpf|hpf|/gesichtsfeld|/gf|/feld|por campo|/campo|/champ|per field|/c",
	"/[LPF]":  "/lpf|lpf",
	"mm/h":    "mm/hr|mm/hora|mm/1a hora|mm/1ah|mm (1 h)|mm/std.|mm n.w.|mm/heure|mm 1h|mm/1 h|mm/1a h|mm/1st hr|mm/1ere h",
	"s":       "sec.|segundos|sekunden|secondes|sek.",
	"mL/min/{1.73_m2}": "ml/min/1.73m2|ml/min/1,73m2|ml/min/1.73 m2|ml/min/1,73 m2|ml/min/1.73qm|ml/min/1,73qm|ml/min/1.73m*2|ml/min per 1.73m2|" +
		"ml/min/1.73|ml/min/1,73|ml/min/1.73sqm|ml/min/1.73m^2|ml/min/1,73m^2|ml/min/1.73 m^2|ml/mn/1.73m2|ml/mn/1,73m2|ml/min/{1.73m2}|ml/min/1.73 m*2|ml/min/173m2",
	"%":               "% hb|%hb|% of total|% total|v%|% (v/v)|% total hgb|% of total hgb",
	"mmol/mol":        "mmol/mol hb|mmol/molhb",
	"{ratio}":         "ratio|(calc)|calc|(ratio)|rel.|quotient",
	"{INR}":           "inr|(inr)",
	"{index_val}":     "index|(index)|coi|s/co index",
	"{s_co_ratio}":    "s/co|(s/co)",
	"[arb'U]":         "units|unit|arb. units|ue",
	"[arb'U]/mL":      "au/ml|u/ml (arb)|rlu/ml|ru/ml|cu/ml",
	"[IU]/mL":         "ui/ml|ie/ml|u.i./ml|i.u./ml|iu/ml",
	"[IU]/L":          "ui/l|ie/l|u.i./l|i.u./l|iu/l",
	"m[IU]/mL":        "mui/ml|mie/ml|miu/ml",
	"m[IU]/L":         "mui/l|mie/l|miu/l",
	"u[IU]/mL":        "uiu/ml|uui/ml|uie/ml|mciu/ml",
	"k[IU]/L":         "kiu/l|kua/l|kui/l",
	"mU/mL":           "mu/ml",
	"mU/L":            "mu/l",
	"uU/mL":           "uu/ml|mcu/ml",
	"kU/L":            "ku/l",
	"U/L":             "u/l|units/l|e/l|unidades/l",
	"mg/dL":           "mg/100ml|mg/100 ml|mg%|mgs/dl",
	"g/dL":            "gr/dl|gm/dl|gms/dl|g%|g/100ml|gm%|gr%|gr/100ml",
	"g/L":             "g/l|gr/l|gm/l",
	"mg/L":            "mg/l|mgs/l",
	"ug/dL":           "ug/dl|mcg/dl|ug/100ml|mg/dl (ug)|µg/dl|ug%",
	"ug/L":            "ug/l|mcg/l",
	"ug/mL":           "ug/ml|mcg/ml",
	"ug/mL{FEU}":      "mcg/ml feu|ug/ml feu|ug/mlfeu|mcg/mlfeu|ug feu/ml|mcg/ml (feu)|ug/ml (feu)",
	"mg/L{FEU}":       "mg/l feu|mg/lfeu|mg feu/l|mg/l (feu)",
	"ng/mL{FEU}":      "ng/ml feu|ng/mlfeu|ng feu/ml|ng/ml (feu)",
	"ug/L{FEU}":       "ug/l feu|ug feu/l",
	"ng/mL{DDU}":      "ng/ml ddu|ng/ml d-du",
	"ng/mL":           "ng/ml|ngm/ml",
	"ng/dL":           "ng/dl",
	"ng/L":            "ng/l",
	"pg/mL":           "pg/ml",
	"pg":              "pg|pg/cell|pg/zelle|picogramos|pg/cel",
	"fL":              "fl|femtoliter|fentolitros|um3|u3",
	"mmol/L":          "mmol/l|mmoles/l|mm/l|m mol/l",
	"umol/L":          "umol/l|mcmol/l|umoles/l",
	"nmol/L":          "nmol/l|nmoles/l",
	"pmol/L":          "pmol/l|pmoles/l",
	"meq/L":           "meq/l|mval/l",
	"mosm/kg":         "mosm/kg|mosmol/kg|mosm/kg h2o",
	"mm[Hg]":          "mmhg|mm hg",
	"mg/g{creat}":     "mg/g crea|mg/g creat|mg/g cr|mg/g creatinine|mg/g kreatinin|mg/g krea|mg/g creatinina|ug/mg creat|mg/gcreat|ug/mg cr|mcg/mg creat|mcg/mg|mg/g",
	"mg/mmol{creat}":  "mg/mmol|mg/mmol creat|mg/mmol krea|mg/mmol creatinine",
	"{copies}/mL":     "copies/ml|cp/ml|kopien/ml|copias/ml",
	"[IU]/mL{log}":    "log iu/ml|log10 iu/ml",
	"{log_copies}/mL": "log copies/ml|log10 copies/ml|log cps/ml",
	"{EU}/dL":         "eu/dl|e.u./dl",
	"mg/(24.h)":       "mg/24h|mg/24 h|mg/d|mg/tag|mg/dia|mg/24hr|mg/24hrs|mg/24 hrs|mg/24 hr|mg/day|mg/jour",
	"g/(24.h)":        "g/24h|g/24 h|g/d|g/tag|g/dia|g/day|gm/24hr|g/24 hr|g/jour",
	"ukat/L":          "ukat/l",
	"nkat/L":          "nkat/l",
	"{titer}":         "titer|titre|titulo",
	"umol/g":          "umol/g",
	"ug/g":            "ug/g|mcg/g",
	"mL/min":          "ml/min|ml/mn",
	"/100{WBCs}":      "/100 wbc|/100wbc|/100 leukozyten|per 100 wbc|/100 leucocitos|/100 gb",
	"[GPL'U]":         "gpl|gpl-u/ml|gpl u/ml|gpl/ml",
	"[MPL'U]":         "mpl|mpl-u/ml|mpl u/ml|mpl/ml",
	"mmol/(24.h)":     "mmol/24h|mmol/24 h|mmol/d|mmol/day|meq/24h",
	"ug/(24.h)":       "ug/24h|ug/24 h|mcg/24h|ug/d|mcg/24 h",
	"mL":              "ml",
	"L/L":             "l/l",
	"[pH]":            "ph units",
	"kPa":             "kpa",
	"mg/mL":           "mg/ml",
	"U/mL":            "u/ml|units/ml|e/ml",
	"U/g{Hb}":         "u/g hb|u/g hgb|iu/g hb",
	"mosm/L":          "mosm/l|mosmol/l",
	"fg":              "fg",
	"[CFU]/mL":        "cfu/ml|kbe/ml|ufc/ml",
	"{M.o.M}":         "mom|(mom)",
	"mL/(24.h)":       "ml/24h|ml/24 h|ml/d|ml/24hr|ml/24 hr|ml/tag|ml/dia|ml/jour|ml/24hrs",
}

func loadUnits(r io.Reader) (*printedUnits, error) {
	c := csv.NewReader(r)
	c.Comment = '#'
	rows, err := c.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%w: units: the table of units must be valid CSV: %v", healthlab.Invalid, err)
	}
	t := &printedUnits{exact: map[string]string{}, folded: map[string]string{}, byLength: map[int][]form{}, forms: map[string][]string{}, cased: map[string]string{}}
	add := func(printed, ucum string) {
		key := unitKey(printed)
		if key == "" {
			return
		}
		if _, taken := t.exact[key]; !taken {
			t.exact[key] = ucum
		}
		low := strings.ToLower(key)
		if _, taken := t.folded[low]; !taken {
			t.folded[low], t.cased[low] = ucum, key
		}
		if form := strings.ToLower(strings.ReplaceAll(fold.Plain(printed), " ", "")); !slices.Contains(t.forms[ucum], form) {
			t.forms[ucum] = append(t.forms[ucum], form)
		}
	}
	for _, row := range rows[1:] {
		if row[0] == "synonym" && !strings.Contains(row[2], "(") {
			add(row[2], row[1])
			add(row[1], row[1])
		}
	}
	for _, ucum := range slices.Sorted(maps.Keys(moreUnits)) {
		for _, p := range strings.Split(moreUnits[ucum], "|") {
			if key := strings.ToLower(unitKey(p)); key != "" {
				if _, taken := t.folded[key]; !taken {
					t.folded[key] = ucum
				}
			}
		}
	}
	// For units whose case matters, these are the meanings of the lower-case form.
	t.folded["g/l"], t.folded["m/ul"], t.folded["u/l"], t.folded["t/l"] = "g/L", "10*6/uL", "U/L", "10*12/L"
	t.exact["G/L"], t.exact["T/L"] = "10*9/L", "10*12/L"
	t.folded["/nl"], t.folded["/pl"] = "10*3/uL", "10*6/uL"
	for _, key := range []string{"mil/mm3", "min", "minutes", "minute", "ai", "sg", "liv", "isr", "1:n", "ph"} {
		delete(t.folded, key) // on a report these words rarely mean a unit
		delete(t.exact, key)
	}
	for _, key := range slices.Sorted(maps.Keys(t.folded)) {
		t.byLength[len(key)] = append(t.byLength[len(key)], form{key, glyphs(key)})
	}
	return t, nil
}

var micro = strings.NewReplacer(" ", "", "\t", "", "mcg", "ug", "mcL", "uL", "mcl", "ul", "MCG", "ug", "MCL", "ul", "meg/", "ug/", "mceg/", "ug/", "mog/", "ug/")

// unitKey returns a printed unit without spaces, and with ASCII letters and u for micro. The case stays.
func unitKey(s string) string {
	s = fold.Plain(s)
	s = strings.Trim(s, " \t,;:")
	s = micro.Replace(s)
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") && !strings.Contains(s[1:len(s)-1], "[") && len(s) > 4 {
		s = s[1 : len(s)-1]
	}
	return s
}

func (t *printedUnits) parse(printed string) (Unit, bool) {
	key := unitKey(printed)
	if key == "" || len(key) > 40 || uncertain(key) {
		return Unit{}, false
	}
	ucum, ok := t.exact[key]
	if !ok {
		ucum, ok = t.folded[strings.ToLower(key)]
	}
	if !ok && strings.HasPrefix(key, "(") && strings.HasSuffix(key, ")") {
		return t.parse(key[1 : len(key)-1])
	}
	if !ok {
		if trimmed := strings.TrimRight(key, ".*"); trimmed != key {
			return t.parse(trimmed)
		}
		if ucum, ok = asUCUM(key); !ok {
			return Unit{}, false
		}
	}
	return Unit{UCUM: ucum, kind: kindOf(ucum)}, true
}

func uncertain(key string) bool {
	// "mil/uL" is a million per microlitre in public tables of laboratory units, but a thousand in Spanish, where
	// mil is thousand. Nothing decides which one a report means. "S" is siemens in UCUM; on a report it marks a
	// susceptible germ, and it never means a second.
	return key == "S" || reMil.MatchString(strings.ToLower(key))
}

var reMil = regexp.MustCompile(`^mil\.?/(?:ul|mm3|mm\^3|cumm|cmm|mcl)$`)

// rePrinted matches printed fractions of units, such as mg/dL, mmol/24h and ug/g creatinine.
var rePrinted = regexp.MustCompile(`^([kmunpf]?)(g|mol|eq|val|osm|osmol|iu|ui|ie|u|kat|cfu|l)/((?:[kdmunpf]?(?:l|g|mol)|24h|d|day|h|hr|min|m2|kg)(?:/(?:24h|d|h|hr|min|kg|m2))?)(?:\(?(creat\w*|crea|krea\w*|cr)\)?)?$`)

var printedAtoms = map[string]string{"g": "g", "mol": "mol", "eq": "eq", "val": "eq", "osm": "osm", "osmol": "osm", "iu": "[IU]", "ui": "[IU]", "ie": "[IU]", "u": "U", "kat": "kat", "cfu": "[CFU]", "l": "L",
	"24h": "(24.h)", "d": "d", "day": "d", "h": "h", "hr": "h", "min": "min", "m2": "m2"}

// asUCUM converts a printed unit that is in no table to a UCUM code. A text with a slash that is a UCUM code
// already stays unchanged.
func asUCUM(key string) (string, bool) {
	if m := rePrinted.FindStringSubmatch(strings.ToLower(key)); m != nil {
		out := m[1] + printedAtoms[m[2]]
		for _, part := range strings.Split(m[3], "/") {
			whole, ok := printedAtoms[part]
			if !ok {
				whole = part[:1] + printedAtoms[part[1:]]
			}
			out += "/" + whole
		}
		if m[4] != "" {
			out += "{creat}"
		}
		_, ok := parseCode(out)
		return out, ok
	}
	if strings.ContainsRune(key, '/') && strings.ContainsAny(key, "[{*") {
		_, ok := parseCode(key)
		return key, ok
	}
	return "", false
}

// kindOf returns the LOINC property (kind of quantity) of a UCUM code.
func kindOf(ucum string) string {
	switch ucum {
	case "%", "L/L", "/100{WBCs}":
		return "fraction"
	case "mmol/mol":
		return "molarfraction"
	case "{ratio}", "{INR}", "{index_val}", "{s_co_ratio}", "{M.o.M}":
		return "ratio"
	case "fL":
		return "entvol"
	case "{titer}":
		return "titer"
	case "{copies}/mL", "[IU]/mL{log}", "{log_copies}/mL":
		return "arbitrary"
	case "[pH]":
		return "ph"
	case "mL/min/{1.73_m2}":
		return "rate"
	case "U/g{Hb}":
		return "massratio"
	case "U", "kU":
		return "catalytic"
	}
	q, ok := parseCode(ucum)
	if !ok {
		return "other"
	}
	return q.kindOf()
}

// Near reports whether a unit differs by less than a factor of a thousand from one of units, the UCUM codes of an
// analyte: creatinine is not measured in pmol/L. It returns true if the units cannot be compared, and for cell
// counts, which are printed both per microlitre and in thousands.
func Near(units []string, unit string) bool {
	got, ok := parseCode(unit)
	if !ok || got.kindOf() == "number" {
		return true
	}
	compared := false
	for _, u := range units {
		have, ok := parseCode(u)
		if !ok || !have.commensurable(got) {
			continue
		}
		if r := got.ratio(have); r > 1.01e-3 && r < 0.99e3 {
			return true
		}
		compared = true
	}
	return !compared
}

// usualForm returns the usual printed form of a key of folded: mg/dL for mg/dl.
func (t *printedUnits) usualForm(folded string) string {
	if as, ok := t.cased[folded]; ok {
		return as
	}
	r := strings.NewReplacer("/dl", "/dL", "/ml", "/mL", "/l", "/L", "/ul", "/uL", "iu/", "IU/", "fl", "fL", "u/l", "U/L")
	return r.Replace(folded)
}
