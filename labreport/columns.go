package labreport

import (
	"math"
	"slices"
	"strings"
)

// role is what a stretch of a line is.
type role uint8

const (
	rName role = iota
	rValue
	rFlag
	rUnit
	rRange
	rLow
	rHigh
	// single roles, at most one a row, end here
	rPrev
	rCode
	rNote
	rDate
	rOut // a value column for results outside the range
	roles
)

// headWords are the words over columns, folded, in four languages.
var headWords = lists(map[role]string{
	rName: "test|tests|test name|analyte|analytes|component|parameter|assay|examination|investigation|determination|determinations|description|procedure|test description|analysis|marker|biomarker|measurement|observation|" +
		"untersuchung|analyse|analyt|bezeichnung|messgrosse|prufung|test name result|name|laborwert|kenngrosse|verfahren|untersuchungen|laborparameter|bestimmung|" +
		"prueba|analito|determinacion|determinaciones|parametro|parametros|examen|estudio|analisis|pruebas|nombre de la prueba|magnitud|" +
		"parametre|parametres|examens|analyses|dosage|libelle|designation|test performed|tests ordered|item|lab test|laboratory test|test item|determinacion analitica|exploracion|essai",
	rValue: "result|results|value|values|your value|your result|current result|observed value|result value|finding|findings|interpretation|in range|in range result|within range|current|reading|patient value|measured value|test result|today|actual|" +
		"wert|werte|ergebnis|ergebnisse|messwert|resultat|resultate|befund|aktuell|aktueller wert|ihr wert|" +
		"valor|resultado|resultados|valores|valor obtenido|su valor|valor actual|valor hallado|" +
		"valeur|resultats|valeurs|votre resultat|current value|current result and flag|result flag|results flag|your results|resultat actuel|valeur mesuree|outcome",
	rOut: "out of range|out of range result|outside range|abnormal|abnormal result|out range|outside reference range",
	rFlag: "flag|flags|abn|status|h l|hinweis|markierung|bewertung|indicador|alerta|alarm|abnormal flag|h l flag|marker flag|auff|auffallig|notice|estado|signal|alerte|drapeau|l h|kennz|kennzeichnung|+ -|marca|" +
		"remark flag|note flag|ind|evaluation|indicateur|assessment|out|hl|bew|anomalie|statut",
	rUnit: "unit|units|einheit|einheiten|unidad|unidades|unite|unites|uom|maeinheit|masseinheit|dimension|unid|unit of measure|measure|u m|ud|uds",
	rRange: "reference|reference range|reference interval|ref range|ref interval|reference ranges|normal range|range|expected|expected range|normal|normal values|normal value|standard range|ref|reference values|reference value|limits|biological reference interval|bio ref interval|" +
		"reference limits|desired range|healthy range|target range|expected value|expected values|expected result|biological ref interval|biological reference range|normal ranges|ref values|ref value|ref ranges|" +
		"normbereich|referenzbereich|normalwert|normalwerte|referenz|referenzwert|referenzwerte|norm|sollwert|ref bereich|referenzintervall|normwerte|normwert|zielbereich|ref wert|" +
		"rango|rango normal|rango de referencia|valores de referencia|valores normales|valor de referencia|intervalo de referencia|v referencia|valores ref|referencia|intervalo|rango ref|v ref|intervalo biologico de referencia|int referencia|" +
		"valeurs de reference|valeur de reference|valeurs normales|intervalle de reference|normes|norme|references|val de reference|valeurs usuelles|intervalle|plage de reference|normales|val ref",
	rLow:  "low|lower|min|minimum|lower limit|ref low|untergrenze|von|minimo|limite inferior|lim inf|desde|lower bound|range low|untere grenze|from|inf|mini|limite inferieure|borne inf|low limit|unterer wert|bas",
	rHigh: "high|upper|max|maximum|upper limit|ref high|obergrenze|bis|maximo|limite superior|lim sup|hasta|upper bound|range high|obere grenze|to|sup|maxi|limite superieure|borne sup|high limit|oberer wert|haut",
	rPrev: "previous|prior|previous result|last|last result|prior result|previous value|previous results|history|vorwert|vorwerte|vorbefund|letzter wert|anterior|resultado anterior|anteriores|valor anterior|valor previo|previo|anteriorite|anteriorites|" +
		"resultat anterieur|resultats anterieurs|anterieur|prev|prev result|historical|prior value|prior results|precedent|previos|last value|trend|delta|voruntersuchung|previous flag|prior values|letzte|change",
	rCode: "lab|code|lab code|site|lab id|performing lab|labor|laboratorio|laboratoire|id|loinc|codigo|performed at|nr|no|loc|test code|perf lab|num|facility|acc",
	rNote: "method|methode|metodo|comment|comments|notes|note|kommentar|bemerkung|bemerkungen|observaciones|comentario|commentaire|remarques|remark|remarks|sample|specimen|specimen type|material|probe|muestra|tecnica|technique|methodology|nota|sample type|instrument|comentarios|type",
	rDate: "date|time|collected|date collected|datum|fecha|date time|uhrzeit|reported|date reported|drawn",
})

// column is a column of a table: what it holds and where its heading stands.
type column struct {
	role   role
	x0, x1 float64
}

// heading reads a line as the heading of a table. It returns nil if it is not one.
func heading(l line) []column {
	var cols []column
	matched, total := 0, 0
	for _, cell := range l.cells() {
		var words []token
		for _, t := range cell {
			if len(foldWords(t.text)) > 0 || strings.ContainsAny(t.text, "+-") && len(t.text) <= 3 {
				words = append(words, t)
			}
		}
		for i := 0; i < len(words); {
			total++
			r, n := headPhrase(words[i:])
			if n == 0 {
				if looksLikeDate(strings.Trim(words[i].text, "()")) && i == 0 {
					cols = append(cols, column{rDate, words[i].x0, words[len(words)-1].x1})
					matched++
					i = len(words)
					continue
				}
				i++
				continue
			}
			matched += n
			total += n - 1
			cols = append(cols, column{r, words[i].x0, words[i+n-1].x1})
			i += n
		}
	}
	if len(cols) < 2 || float64(matched) < 0.6*float64(total) || !tableHeads(cols) {
		return nil
	}
	settle(cols)
	return withoutParents(cols)
}

// tableHeads reports whether the columns are those of a table of results, and tells
// dated columns of results apart.
func tableHeads(cols []column) bool {
	has := map[role]int{}
	for _, c := range cols {
		has[c.role]++
	}
	// Results headed by their dates: the first is the current one, unless a column
	// called result stands beside them.
	if has[rValue] == 0 && has[rOut] == 0 && has[rDate] > 0 && (has[rName] > 0 || has[rUnit]+has[rRange] > 0) {
		first := true
		for i := range cols {
			if cols[i].role == rDate {
				if first {
					cols[i].role = rValue
				} else {
					cols[i].role = rPrev
				}
				first = false
			}
		}
		has[rValue] = 1
	} else if has[rValue] > 0 && has[rDate] > 0 {
		for i := range cols {
			if cols[i].role == rDate && i > 0 {
				cols[i].role = rPrev
			}
		}
	}
	value := has[rValue] + has[rOut]
	if value == 0 && !(has[rName] > 0 && has[rRange] > 0 && has[rUnit] > 0) {
		return false
	}
	if value > 0 && has[rName] == 0 && has[rUnit] == 0 && has[rRange] == 0 && has[rLow] == 0 {
		return false
	}
	if has[rName]+has[rUnit]+has[rRange]+has[rLow]+has[rFlag] == 0 {
		return false
	}
	return true
}

// settle makes a second value column an older result, and a second name column a
// note.
func settle(cols []column) {
	rOutThere := hasRoleExactly(cols, rOut)
	// A second value column is an older result.
	seen := false
	for i := range cols {
		if cols[i].role == rValue {
			if seen && !rOutThere {
				// "Result   Interpretation": the words are a flag.
				cols[i].role = rPrev
			}
			seen = true
		}
	}
	named := false
	for i := range cols {
		if cols[i].role == rName {
			if named {
				cols[i].role = rNote
			}
			named = true
		}
	}
}

func hasRoleExactly(cols []column, r role) bool {
	return slices.ContainsFunc(cols, func(c column) bool { return c.role == r })
}

// withoutParents drops the word that stands over two columns: "Reference" over "Low"
// and "High".
func withoutParents(cols []column) []column {
	if !hasRoleExactly(cols, rLow) || !hasRoleExactly(cols, rHigh) {
		return cols
	}
	return slices.DeleteFunc(cols, func(c column) bool { return c.role == rRange })
}

func headPhrase(words []token) (role, int) {
	for n := min(4, len(words)); n > 0; n-- {
		var parts []string
		for _, w := range words[:n] {
			f := foldWords(w.text)
			if len(f) == 0 {
				f = []string{w.text}
			}
			parts = append(parts, f...)
		}
		if r, ok := headWords[strings.Join(parts, " ")]; ok {
			return r, n
		}
	}
	return 0, 0
}

// columnOf returns the column that a stretch of print belongs to, and how far off it
// stands, in heights of a line; -1 if there are no columns.
func columnOf(cols []column, x0, x1, h float64) (int, float64) {
	best, bestCost := -1, math.Inf(1)
	for i, c := range cols {
		cost := min(math.Abs(x0-c.x0), math.Abs(x1-c.x1), math.Abs((x0+x1-c.x0-c.x1)/2))
		if x0 < c.x1 && c.x0 < x1 {
			cost -= 0.6 * h
		} else {
			cost += 0.3 * h
		}
		if cost < bestCost {
			best, bestCost = i, cost
		}
	}
	if best < 0 {
		return -1, 0
	}
	return best, bestCost / max(h, 1e-9)
}
