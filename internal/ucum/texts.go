package ucum

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// givenTexts maps UCUM codes to the texts by which phone stores, devices and laboratories name the unit of a value,
// in the form of [textKey]. Many are ordinary words on a printed report, so only [ParseAs] accepts them, not
// [Parse]. The unit names of the UCUM table need no entry.
var givenTexts = map[string]string{
	"kg": "kilo kilos kgs kilogramme kilogrammes", "g": "gm gramme grammes", "ug": "mcg", "[lb_av]": "lb lbs lbm pound pounds", "[oz_av]": "oz ounce ounces", "[stone_av]": "st stone stones",
	"[mi_i]": "mi mile miles", "[ft_i]": "ft foot feet", "[yd_i]": "yd yard yards", "[in_i]": "in inch inches", "[nmi_i]": "nmi",
	"[Cal]": "kilocalorie kilocalories largecalorie largecalories", "Cel": "°c degc c celsius degreescelsius", "[degF]": "°f degf f fahrenheit degreesfahrenheit", "K": "degk",
	"%": "percent pct", "1": "count counts # times step steps floor floors flight flights push pushes",
	"mL": "cc", "[foz_us]": "fl_oz_us floz fl.oz fl_oz fluidounceus fluidounce(us) fluidounces(us) usfloz", "[foz_br]": "fl_oz_imp fluidounceimperial", "[cup_us]": "cup_us cup cups", "[pt_br]/2": "cup_imp", "[pt_us]": "pt_us", "[pt_br]": "pt_imp", "L/min": "lpm",
	// If the codes of a text are different units, ParseAs returns false for it.
	"[gal_us]": "gallon gallons gal", "[gal_br]": "gallon gallons gal", "[cup_m]": "cup cups", "[tbs_us]": "tablespoon tablespoons tbsp", "[tbs_m]": "tablespoon tablespoons tbsp",
	"[tsp_us]": "teaspoon teaspoons tsp", "[tsp_m]": "teaspoon teaspoons tsp",
	"min": "mins minute minutes", "s": "sec secs second seconds", "ms": "msec msecs", "h": "hr hrs", "d": "day days",
	"/min":      "bpm brpm count/min beats/min beat/min beats/minute breaths/min breath/min breaths/minute count/minute beatsperminute breathsperminute rpm resp/min respirations/min b/min br/min",
	"/s":        "count/s beats/s count/sec",
	"mL/kg/min": "ml/min.kg ml/kg.min ml/(kg.min) ml/(min.kg) ml/kg/minute ml.(kg.min)-1 ml.(min.kg)-1 mlkg-1min-1",
	"uV":        "mcv", "mm[Hg]": "mmhg torr millimeterofmercury millimetersofmercury millimetreofmercury millimetresofmercury", "cm[H2O]": "cmh2o cmaq", "[in_i'Hg]": "inhg", "[psi]": "psi", "[iU]": "unit units iu i.u u ie i.e ui u.i count",
	"mmol/L": "millimol/l millimoles/l", "umol/L": "mcmol/l micromol/l", "km/h": "km/hr kmh kph kmph", "[mi_i]/h": "mi/hr mph", "[kn_i]": "kn kt kts knot knots", "[ft_i]/s": "ft/s ft/sec fps",
	"mg/dL": "mg/100ml mgs/dl", "kPa": "kpa kilopascal kilopascals", "kg/m2": "kg/m^2",
}

// givenExact maps texts to UCUM codes whose letter case matters: cal is a thousandth of Cal.
var givenExact = map[string]string{"mM": "mmol/L", "uM": "umol/L", "Cal": "[Cal]", "Cals": "[Cal]", "cal": "cal"}

// isCaseAmbiguous reports whether a text means another unit in lower case, so that nothing tells which one was meant: S
// (siemens) and s (second), H (henry) and h (hour), CAL (calorie or kilocalorie).
func isCaseAmbiguous(key string) bool {
	if key == "CAL" || key == "CALS" {
		return true
	}
	last := strings.TrimLeft(key, "yzafpnumcdk")
	return last == "S" || last == "H"
}

// letters replaces variants of a letter or sign by one of them, and removes spaces.
var letters = strings.NewReplacer(
	" ", "", "\t", "", "\u00a0", "", "\u202f", "", "\u2009", "", "µ", "u", "μ", "u", "²", "2", "³", "3", "⁻", "-", "¹", "1", "℃", "°C", "℉", "°F", "º", "°", "ℓ", "l", "％", "%",
	"·", ".", "⋅", ".", "∙", ".", "×", ".", "⁄", "/", "∕", "/", "−", "-", "\\", "",
)

// textKey returns the normal form of a unit text, without what does not change its meaning: spaces, variants of
// letters, annotations in braces, and the molar mass that a phone store writes into mmol. The normal form of an
// annotation alone is {}.
func textKey(text string) string {
	key := letters.Replace(text)
	for _, pair := range []string{"{}", "<>"} {
		for {
			from := strings.IndexByte(key, pair[0])
			to := strings.IndexByte(key, pair[1])
			if from < 0 || to < from {
				break
			}
			key = key[:from] + key[to+1:]
		}
	}
	if key == "" && strings.Contains(text, "{") {
		return "{}"
	}
	return strings.TrimSuffix(key, ".")
}

// given returns the UCUM codes by text: for the texts of givenTexts, and for the names in the UCUM table.
var given = sync.OnceValue(func() textCodes {
	out, written := map[string][]string{}, map[string]bool{}
	for code, texts := range givenTexts {
		for _, text := range strings.Fields(texts) {
			out[text], written[text] = append(out[text], code), true
		}
	}
	named := map[string][]string{}
	name := func(name, code string) {
		name = strings.ToLower(strings.ReplaceAll(name, " ", ""))
		if _, taken := out[name]; !taken {
			named[name] = append(named[name], code)
			named[name+"s"] = append(named[name+"s"], code)
		}
		if rest, ok := strings.CutSuffix(name, "er"); ok && (strings.HasSuffix(name, "meter") || strings.HasSuffix(name, "liter")) {
			named[rest+"re"] = append(named[rest+"re"], code)
			named[rest+"res"] = append(named[rest+"res"], code)
		}
	}
	add := func(a *atom) {
		if strings.Contains(a.name, "calorie") {
			return // the word can mean the kilocalorie as well
		}
		name(a.name, a.code)
		if a.metric {
			for _, p := range prefixTable {
				name(p.name+a.name, p.code+a.code)
			}
		}
	}
	t := table()
	for _, row := range baseTable {
		add(t.code[row.code])
	}
	for _, row := range unitTable {
		add(t.code[row.code])
	}
	for text, codes := range named {
		out[text] = append(out[text], codes...)
	}
	return textCodes{out, written}
})

// textCodes maps texts to UCUM codes (codes), and marks the texts from givenTexts (written).
type textCodes struct {
	codes   map[string][]string
	written map[string]bool
}

// ParseAs returns the unit that a text beside a value means, if it has the same dimension as the UCUM code like. It
// accepts texts of phone stores, devices and laboratories in any letter case, UCUM codes in both forms, and names
// of the UCUM table; it ignores annotations. The letter case counts only where it changes the meaning: cal is a
// thousandth of Cal. It returns false for an unknown text, and for one that may mean several units, such as pint or
// S (siemens or second).
func ParseAs(text, like string) (Unit, bool) {
	want, ok := parseCode(like)
	key := textKey(text)
	if !ok || key == "" || len(key) > maxCode || isCaseAmbiguous(key) {
		return Unit{}, false
	}
	fits := func(code string) bool {
		q, ok := parseCode(code)
		return ok && q.sameDimension(want)
	}
	found := func(code string) (Unit, bool) { return Unit{UCUM: code, kind: kindOf(code)}, true }
	if key == "{}" {
		key = "1"
	}
	plain := strings.ReplaceAll(strings.ReplaceAll(key, "^", ""), "*", ".")
	texts := given()
	if code, ok := givenExact[key]; ok {
		return Unit{UCUM: code, kind: kindOf(code)}, fits(code)
	}
	// A text of givenTexts is not read as the code of another unit: ft is a foot, not a femtotonne.
	low := strings.ToLower(plain)
	// A text in capitals is read as a case-insensitive code: ML is a millilitre, not a megalitre.
	if u, err := FromInsensitiveCode(key); len(key) > 1 && key == strings.ToUpper(key) && err == nil && fits(u.UCUM) && !texts.written[low] {
		return found(u.UCUM)
	}
	if fits(key) && (!texts.written[low] || slices.Contains(texts.codes[low], key)) {
		return found(key)
	}
	var one string
	for _, code := range texts.codes[low] {
		if !fits(code) {
			continue
		}
		if one != "" && !Same(one, code) {
			return Unit{}, false
		}
		one = code
	}
	if one != "" {
		return found(one)
	}
	if texts.written[low] {
		return Unit{}, false
	}
	for _, code := range []string{key, plain, mcAsMicro(plain)} {
		if u, err := FromInsensitiveCode(code); err == nil && fits(u.UCUM) {
			return found(u.UCUM)
		}
		if fits(code) {
			return found(code)
		}
	}
	if _, other := parseCode(key); !other && fits(low) {
		return found(low)
	}
	if code, ok := fromWords(text); ok && fits(code) {
		return found(code)
	}
	return Unit{}, false
}

// counted are words for things that are counted. They stand for no unit: beats/min is /min.
var counted = map[string]bool{"beat": true, "beats": true, "breath": true, "breaths": true, "count": true, "counts": true, "respiration": true, "respirations": true}

// fromWords returns the UCUM code of a unit text that consists of names: milligrams per deciliter, litres/min,
// BEATS_PER_MINUTE.
func fromWords(text string) (string, bool) {
	parts := strings.Split(strings.ReplaceAll(" "+strings.ReplaceAll(strings.ToLower(text), "_", " ")+" ", " per ", "/"), "/")
	if len(parts) < 2 {
		return named(parts[0])
	}
	// The word unit is refused in a fraction, because it may be an enzyme unit or an international unit.
	named := func(name string) (string, bool) {
		code, ok := named(name)
		return code, ok && code != "[iU]"
	}
	out := ""
	if first := strings.TrimSpace(parts[0]); first != "" && !counted[first] {
		code, ok := named(first)
		if !ok {
			return "", false
		}
		out = code
	}
	for _, part := range parts[1:] {
		words := []string{part}
		if _, ok := named(part); !ok { // two units, as in "per minute kilogram": both divide
			words = strings.Fields(part)
		}
		if len(words) == 0 {
			return "", false
		}
		for _, word := range words {
			code, ok := named(word)
			if !ok {
				return "", false
			}
			out += "/" + code
		}
	}
	return out, true
}

// named returns the UCUM code of a unit name or a short unit text; false if it is unknown or means several units.
func named(name string) (string, bool) {
	key := textKey(name)
	codes := given().codes[key]
	if len(codes) > 0 {
		return codes[0], !slices.ContainsFunc(codes, func(code string) bool { return !Same(code, codes[0]) })
	}
	if key == "" {
		return "", false
	}
	for _, code := range []string{key, strings.ToUpper(key)} {
		if u, err := FromInsensitiveCode(code); err == nil {
			return u.UCUM, true
		}
	}
	return "", false
}

func mcAsMicro(key string) string {
	if len(key) > 2 && strings.EqualFold(key[:2], "mc") {
		return "u" + key[2:]
	}
	return key
}

// sameDimension reports whether q and want have the same dimension, annotations aside. A special unit, such as degrees
// Celsius, has the dimension of its underlying unit.
func (q quantity) sameDimension(want quantity) bool {
	if q.mixed || want.mixed {
		return false
	}
	q, want = q.proper(), want.proper()
	a, b := q.arbitrary(), want.arbitrary()
	if q.dims != want.dims || len(a) != len(b) {
		return false
	}
	for name, e := range a {
		if b[name] != e {
			return false
		}
	}
	return true
}

// Conversion converts a value v from one unit to another: (v - Minus) * Times / Over.
type Conversion struct{ Times, Over, Minus float64 }

// Of returns v converted.
func (c Conversion) Of(v float64) float64 { return (v - c.Minus) * c.Times / c.Over }

type conversionKey struct{ text, to string }

// knownConversions caches results of [ConversionAs], at most maxKnown.
type knownConversions struct {
	byKey sync.Map
	count atomic.Int64
}

func (k *knownConversions) add(key conversionKey, c Conversion) {
	if k.count.Add(1) <= maxKnown {
		key.text = strings.Clone(key.text)
		k.byKey.Store(key, c)
	}
}

// Failed conversions have a cache of their own, so that unknown unit texts do not use up the space of known ones.
var conversions, noConversions knownConversions

// ConversionAs returns the conversion of values with a unit text, which [ParseAs] reads, to the UCUM code to. It
// returns false if the text is unknown or there is no linear conversion, as between decibels and volts.
func ConversionAs(text, to string) (Conversion, bool) {
	key := conversionKey{text, to}
	if c, ok := conversions.byKey.Load(key); ok {
		return c.(Conversion), true
	}
	if _, ok := noConversions.byKey.Load(key); ok {
		return Conversion{}, false
	}
	if u, ok := ParseAs(text, to); ok {
		if c, ok := u.ConversionTo(to); ok {
			conversions.add(key, c)
			return c, true
		}
	}
	noConversions.add(key, Conversion{})
	return Conversion{}, false
}

// ConversionTo returns the conversion of values in u to a UCUM code, annotations aside. It returns false if the
// dimensions differ or there is no linear conversion.
func (u Unit) ConversionTo(code string) (Conversion, bool) {
	a, ok1 := parseCode(u.UCUM)
	b, ok2 := parseCode(code)
	if !ok1 || !ok2 || !a.sameDimension(b) {
		return Conversion{}, false
	}
	return a.linear(b)
}

// GivenTexts returns the texts, by UCUM code, that [ParseAs] accepts in addition to the codes and names of the UCUM
// table. Texts whose letter case matters are as written, others in lower case.
func GivenTexts() map[string][]string {
	out := map[string][]string{}
	for code, texts := range givenTexts {
		out[code] = strings.Fields(texts)
	}
	for _, text := range slices.Sorted(maps.Keys(givenExact)) {
		code := givenExact[text]
		out[code] = append(out[code], text)
	}
	return out
}
