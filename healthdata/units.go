package healthdata

import "strings"

// conversion turns a value of another unit into the resource's: (v - minus) * times / over.
type conversion struct{ times, over, minus float64 }

func (c conversion) of(v float64) float64 { return (v - c.minus) * c.times / c.over }

func times(f float64) conversion { return conversion{times: f, over: 1} }
func over(f float64) conversion  { return conversion{times: 1, over: f} }

// spelling is one unit of those that a unit can be converted from, with its texts: those of phone
// stores, devices and laboratories, and the codes of UCUM, as [unitKey] writes them, with spaces
// between.
type spelling struct {
	conversion
	texts string
}

// unitSpellings lists, by the unit that we keep, the units that we can turn into it. Units of amount
// of substance need to know the substance, see massUnits.
//
// Exact factors: international pound and mile (1959), thermochemical calorie, US gallon of 231 cubic
// inches and its parts, imperial gallon of 4.54609 L. Codes: the Unified Code for Units of Measure,
// https://ucum.org.
var unitSpellings = map[string][]spelling{
	"kg": {
		{times(1), "kg kilogram kilograms kilogramme kilo kilos kgs"}, {over(1000), "g gram grams gm"}, {over(1e6), "mg"},
		{times(0.45359237), "lb lbs pound pounds [lb_av]"}, {times(6.35029318), "st stone stones [stone_av]"}, {times(0.028349523125), "oz ounce ounces [oz_av]"},
	},
	"m": {
		{times(1), "m meter meters metre metres"}, {times(1000), "km kilometer kilometers kilometre kilometres"}, {over(100), "cm centimeter centimeters centimetre centimetres"},
		{over(1000), "mm millimeter millimeters millimetre millimetres"}, {times(1609.344), "mi mile miles [mi_i]"}, {times(0.3048), "ft foot feet [ft_i]"},
		{times(0.9144), "yd yard yards [yd_i]"}, {times(0.0254), "in inch inches [in_i]"}, {times(1852), "nmi [nmi_i]"},
	},
	"cm": {
		{times(1), "cm centimeter centimeters centimetre centimetres"}, {times(100), "m meter meters metre metres"}, {over(10), "mm millimeter millimeters millimetre millimetres"},
		{times(2.54), "in inch inches [in_i]"}, {times(30.48), "ft foot feet [ft_i]"},
	},
	"kcal": {
		{times(1), "kcal kilocalorie kilocalories [cal] largecalorie"}, {over(4.184), "kj kilojoule kilojoules"}, {over(4184), "j joule joules"},
	},
	"°C": {
		{times(1), "°c degc c cel celsius degreescelsius"}, {conversion{1, 1.8, 32}, "°f degf f fahrenheit degreesfahrenheit [degf]"}, {conversion{1, 1, 273.15}, "k kelvin"},
	},
	"%": {{times(1), "% percent pct"}, {times(100), "fraction 1"}},
	"g": {
		{times(1), "g gram grams gm"}, {over(1000), "mg milligram milligrams"}, {over(1e6), "ug mcg microgram micrograms"}, {times(1000), "kg kilogram kilograms"},
		{times(28.349523125), "oz ounce ounces [oz_av]"}, {times(453.59237), "lb lbs pound pounds [lb_av]"},
	},
	"ml": {
		{times(1), "ml milliliter milliliters millilitre millilitres cc cm3"}, {times(1000), "l liter liters litre litres dm3"}, {times(10), "cl"}, {times(100), "dl"},
		{times(29.5735295625), "fl_oz_us floz fl_oz fluidounceus [foz_us]"}, {times(28.4130625), "fl_oz_imp [foz_br]"},
		{times(236.5882365), "cup_us [cup_us]"}, {times(284.130625), "cup_imp"}, {times(473.176473), "pt_us [pt_us]"}, {times(568.26125), "pt_imp [pt_br]"},
	},
	"L":     {{times(1), "l liter liters litre litres dm3"}, {over(1000), "ml milliliter milliliters millilitre millilitres cm3"}, {over(100), "cl"}, {over(10), "dl"}},
	"L/min": {{times(1), "l/min l.min-1 lpm"}, {over(1000), "ml/min ml.min-1"}, {times(60), "l/s l.s-1"}},
	"min": {
		{times(1), "min mins minute minutes"}, {over(60), "s sec secs second seconds"}, {over(60_000), "ms msec millisecond milliseconds"}, {times(60), "h hr hrs hour hours"}, {times(1440), "d day days"},
	},
	"bpm": {
		{times(1), "bpm count/min /min 1/min min-1 beats/min beat/min beatsperminute beats/minute breaths/min breath/min breathsperminute breaths/minute brpm"},
		{times(60), "count/s /s 1/s s-1 hz beats/s"},
	},
	"rmssd":     {{times(1), "rmssd ms msec millisecond milliseconds"}, {times(1000), "s sec second seconds"}},
	"ms":        {{times(1), "ms sdnn msec millisecond milliseconds"}, {times(1000), "s sec second seconds"}},
	"mL/kg/min": {{times(1), "ml/kg/min ml/min.kg ml/min/kg ml/kg.min ml/(kg.min) ml/(min.kg) ml.kg-1.min-1 ml.min-1.kg-1 ml/kg/minute"}},
	"mV":        {{times(1), "mv millivolt millivolts"}, {times(1000), "v volt volts"}, {over(1000), "uv mcv microvolt microvolts"}},
	"mmHg":      {{times(1), "mmhg mm[hg] torr"}, {times(7.500615758456563), "kpa kilopascal kilopascals"}, {times(0.7355591), "cmh2o cm[h2o]"}},
	"unit":      {{times(1), "unit units iu i.u. u [iu] count ie ui"}},
	"count":     {{times(1), "count counts 1 {} # times"}},
	"index":     {{times(1), "index count kg/m2 kg.m-2 1"}},
	"mmol/L":    {{times(1), "mmol/l mmol.l-1 millimol/l millimoles/l"}, {over(1000), "umol/l umol.l-1"}},
	"FSU":       {{times(1), "fsu"}},
	"m/s":       {{times(1), "m/s m.s-1"}, {over(3.6), "km/h km/hr kmh kph km.h-1"}, {times(0.44704), "mi/hr mi/h mph [mi_i]/h"}},
	"W":         {{times(1), "w watt watts"}, {times(1000), "kw kilowatt kilowatts"}},
}

// unitExact are texts whose case decides what they mean, by the unit that they can be turned into.
// A calorie with a small letter is a thousandth of one with a capital.
var unitExact = map[string]map[string]conversion{
	"mmol/L": {"mM": times(1)},
	"kcal":   {"Cal": times(1), "Cals": times(1), "cal": over(1000), "cal_th": over(1000)},
}

// unitOther are texts that are another unit in this case: siemens, henry, and calories of which it is
// not known whether they are large.
var unitOther = map[string]bool{"S": true, "H": true, "CAL": true}

var unitsFor = func() map[string]map[string]conversion {
	out := make(map[string]map[string]conversion, len(unitSpellings))
	for unit, list := range unitSpellings {
		out[unit] = map[string]conversion{}
		for _, s := range list {
			for _, text := range strings.Fields(s.texts) {
				out[unit][text] = s.conversion
			}
		}
	}
	return out
}()

// unitLetters writes what is one letter or sign as another program has it.
var unitLetters = strings.NewReplacer(
	" ", "", "\t", "", "\u00a0", "", "\u202f", "", "\u2009", "", "µ", "u", "μ", "u", "²", "2", "³", "3", "⁻", "-", "¹", "1", "℃", "°C", "℉", "°F", "º", "°", "ℓ", "l", "％", "%",
	"·", ".", "⋅", ".", "∙", ".", "×", ".", "*", ".", "^", "", "⁄", "/", "∕", "/", "−", "-", "\\", "",
)

// unitKey writes a unit without what does not change its meaning: spaces, the glyphs of letters,
// annotations in braces as UCUM has them, and the molar mass that a phone store writes into mmol.
// An annotation alone is {}.
func unitKey(unit string) string {
	key := unitLetters.Replace(unit)
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
	if key == "" && strings.Contains(unit, "{") {
		return "{}"
	}
	return strings.TrimSuffix(key, ".")
}

// ConvertUnit returns a value in one of the units of the catalogue, or in m/s or W, and whether the text
// names a unit that can be turned into it. The texts of phone stores, devices and laboratories are
// known in every case, and so are those of UCUM; where the case changes the meaning, the text must
// have it: S is siemens and no second.
func ConvertUnit(v float64, from, to string) (float64, bool) {
	if from == to {
		return v, true
	}
	c, ok := conversionOf(from, to)
	if !ok {
		return 0, false
	}
	return c.of(v), true
}

func conversionOf(from, to string) (conversion, bool) {
	if c, ok := unitsFor[to][from]; ok && !unitOther[from] {
		return c, ok // as it is written most often
	}
	key := unitKey(from)
	if c, ok := unitExact[to][key]; ok {
		return c, true
	}
	if unitOther[key] {
		return conversion{}, false
	}
	c, ok := unitsFor[to][strings.ToLower(key)]
	return c, ok
}

// massTexts are masses per volume, in mg/dL.
var massTexts = map[string]conversion{
	"mg/dl": times(1), "mg.dl-1": times(1), "mg%": times(1), "mg/100ml": times(1), "g/l": times(100), "g.l-1": times(100), "mg/l": over(10), "ug/ml": over(10), "mg/ml": times(100), "g/dl": times(1000),
}

// massUnits turns mass per volume into amount per volume, which depends on the
// substance: mg/dL of glucose (molar mass 180.182), of cholesterol (386.7) and of
// triglycerides (885.7).
func massUnits(resource, sampleType, unit string) (conversion, bool) {
	mass, ok := massTexts[strings.ToLower(unitKey(unit))]
	if !ok {
		return conversion{}, false
	}
	switch {
	case resource == "glucose":
		mass.over *= 18.0182
	case resource == "cholesterol" && sampleType == "cholesterol/triglycerides":
		mass.over *= 88.57
	case resource == "cholesterol":
		mass.over *= 38.67
	default:
		return conversion{}, false
	}
	return mass, true
}

// Convert returns a value in the unit of the resource, and whether it knows how to
// get there, as [ConvertUnit] does. A sample type is needed where the substance decides.
func (r *Resource) Convert(v float64, unit, sampleType string) (float64, bool) {
	if out, ok := ConvertUnit(v, unit, r.Unit); ok {
		return out, true
	}
	if c, ok := massUnits(r.Slug, sampleType, unit); ok {
		return c.of(v), true
	}
	return 0, false
}
